package whatsapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"time"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/redact"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// typeContacts is the type of messages with contacts.
const typeContacts = "contacts"

// delivery is one webhook while it is handled. Its settings and time are those of its arrival.
type delivery struct {
	hook     *Hook
	settings *settings.Settings
	account  *settings.WhatsApp
	now      time.Time
	// declines is set while a tap on the button that declines is handled.
	declines bool
}

// receiveMessage handles a message. An error means that the message must come again.
func (d *delivery) receiveMessage(ctx context.Context, m *message) (messenger.Outcome, error) {
	from, known := m.readSender()
	text, refused, err := m.readContent()
	switch {
	case err != nil:
		return messenger.OutcomeMalformed, nil //nolint:nilerr // it would be as malformed the next time
	case refused != "" && text == "" && m.Type != typeContacts:
		return refused, nil
	case m.isInGroup():
		return messenger.OutcomeNotPrivate, nil
	case d.isEcho(m, from):
		return messenger.OutcomeEcho, nil
	case !known:
		return messenger.OutcomeNoSender, nil
	case m.Timestamp.IsZero():
		return messenger.OutcomeNoTime, nil
	case d.hook.senders.Exceeded(d.now, from.key()):
		return messenger.OutcomeLimited, nil
	}
	var came messenger.Outcome
	if refused != "" {
		came, err = d.refuseMessage(ctx, m, from, text, refused)
	} else {
		came, err = d.receiveFrom(ctx, m, from, text)
	}
	if err == nil { // a message that comes again because we failed counts once
		d.hook.senders.Count(d.now, from.key())
	}
	return came, err
}

// receiveFrom handles a message that may count.
func (d *delivery) receiveFrom(ctx context.Context, m *message, from sender, text string) (messenger.Outcome, error) {
	tap, tapped := m.confirmationTap()
	answer, answersButton := m.buttonTap()
	switch {
	case m.Type == typeContacts:
		return d.receiveContact(ctx, m, from)
	case tapped:
		return d.receiveTap(ctx, m, from, tap)
	case answersButton && answer.confirms:
		return d.receiveEchoTap(ctx, m, from, answer)
	case answersButton:
		declining := *d
		declining.declines = true
		return declining.receiveNotMe(ctx, m, from, answer)
	case !from.number.IsZero():
		return d.receiveText(ctx, m, from, text)
	case d.account.HiddenNumbers == settings.HiddenEcho:
		return d.receiveForEcho(ctx, m, from, text)
	case d.account.HiddenNumbers == settings.HiddenShared:
		return d.receiveHidden(ctx, m, from, text)
	default:
		hidden := verification.Message{
			Evidence: m.newEvidence(phone.Number{}, verification.AssuranceUsual), Text: text, Binding: from.key(),
		}
		receipt, err := d.hook.service.RefuseHidden(ctx, hidden, d.settings.EventKinds())
		return d.replyToOutcome(ctx, from, receipt, err)
	}
}

// isInGroup reports whether the message was sent to a group. Groups have a group_id in the message; in the context it was in
// the On-Premises API.
func (m *message) isInGroup() bool { return isPresent(m.GroupID) || isPresent(m.Context.GroupID) }

// isEcho reports whether the sender is the business itself.
func (d *delivery) isEcho(m *message, from sender) bool {
	if m.From != "" && m.From == m.businessNumber {
		return true
	}
	business, err := phone.ParseWhatsApp(onlyDigits(d.account.PhoneNumber))
	return err == nil && !from.number.IsZero() && phone.Same(business, from.number)
}

// codeBreak stands between two texts of one message, so that no code is read across them.
const codeBreak = " | "

// readText returns the text of a message; false if its type has none.
func (m *message) readText() (string, bool, error) {
	switch m.Type {
	case "text":
		var text struct {
			Body string `json:"body"`
		}
		if err := json.Unmarshal(m.Text, &text); err != nil {
			return "", false, fmt.Errorf("parse text: %w", err)
		}
		return text.Body, true, nil
	case "button":
		// The answer to a button of a template: payload is what the business put there, text what the user saw.
		var button struct {
			Payload string `json:"payload"`
			Text    string `json:"text"`
		}
		if err := json.Unmarshal(m.Button, &button); err != nil {
			return "", false, fmt.Errorf("parse button: %w", err)
		}
		return button.Payload + codeBreak + button.Text, true, nil
	case "interactive":
		return m.readInteractive()
	default:
		return "", false, nil
	}
}

// interactiveReply is the answer to an interactive message of ours.
type interactiveReply struct {
	Type        string `json:"type"`
	ButtonReply Button `json:"button_reply"`
	ListReply   Button `json:"list_reply"`
}

// Button is a button below a text (Cloud API, "Interactive reply buttons": an id has up to 256 characters, a title up to 20).
type Button struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

func (m *message) readInteractive() (string, bool, error) {
	var reply interactiveReply
	if err := json.Unmarshal(m.Interactive, &reply); err != nil {
		return "", false, fmt.Errorf("parse interactive: %w", err)
	}
	switch reply.Type {
	case "button_reply":
		return reply.ButtonReply.ID + codeBreak + reply.ButtonReply.Title, true, nil
	case "list_reply":
		return reply.ListReply.ID + codeBreak + reply.ListReply.Title, true, nil
	default: // nfm_reply is a form that we never send.
		return "", false, nil
	}
}

// newEvidence returns the evidence of the message about a number.
func (m *message) newEvidence(number phone.Number, assurance verification.Assurance) verification.Evidence {
	return verification.Evidence{
		Method: verification.WhatsApp, Sender: number, SentAt: m.Timestamp.Time, Assurance: assurance,
	}
}

// receiveText handles a text from a sender whose number Meta reports.
func (d *delivery) receiveText(ctx context.Context, m *message, from sender, text string) (messenger.Outcome, error) {
	in := verification.Message{Evidence: m.newEvidence(from.number, verification.AssuranceUsual), Text: text}
	if !d.account.AcceptAnyText {
		bound := confirmationBindings(d.account, from, m.ID, d.now)
		if len(bound) == 0 {
			return messenger.OutcomeFailed, errSecretLost
		}
		in.Binding, in.OlderBindings, in.Prepared = bound[0], bound[1:], d.preparedTexts
	}
	receipt, err := d.hook.service.Receive(ctx, in, d.settings.EventKinds())
	if err == nil && receipt.Outcome == verification.OutcomeNeedConfirmation {
		return d.askConfirmation(ctx, from, receipt)
	}
	return d.replyToOutcome(ctx, from, receipt, err)
}

// preparedTexts returns the texts that the user of a request was to send one of.
func (d *delivery) preparedTexts(r *verification.Request, code verification.Code) iter.Seq[string] {
	return preparedTexts(d.settings, r, code, d.now)
}

// errSecretLost is returned if the secret that the webhook was authenticated with is gone.
var errSecretLost = errors.New("app secret was removed in the meantime")

// receiveHidden handles a text from a sender without a number, and asks for it.
func (d *delivery) receiveHidden(ctx context.Context, m *message, from sender, text string) (messenger.Outcome, error) {
	known := senderBindings(d.account, from.userID, d.now)
	if len(known) == 0 {
		return messenger.OutcomeFailed, errSecretLost
	}
	receipt, err := d.hook.service.Receive(ctx, verification.Message{
		Evidence: m.newEvidence(phone.Number{}, verification.AssuranceUsual), Text: text, Binding: known[0],
	}, d.settings.EventKinds())
	if err == nil && receipt.Outcome == verification.OutcomeNeedContact {
		return d.askContact(ctx, from, known[0], receipt)
	}
	return d.replyToOutcome(ctx, from, receipt, err)
}

// replyToOutcome answers the sender. The replica and the message that verified or declined a request are the ones to report it, so a copy
// of the message, at whatever replica, is not answered again.
//
// A copy with another outcome may be answered again at another replica. Nothing stored shows whether its first answer was sent, and
// a lost answer is worse than a second one.
func (d *delivery) replyToOutcome(
	ctx context.Context, from sender, receipt verification.Receipt, err error,
) (messenger.Outcome, error) {
	if err == nil && receipt.Outcome == verification.OutcomeProven {
		return d.giveSessionCodes(ctx, from, receipt)
	}
	if d.declines && receipt.Outcome == verification.OutcomeTooLate && receipt.Request.Phase != verification.Verified {
		receipt.Outcome = verification.OutcomeDeclined // the request ended before, and nothing was confirmed
	}
	came, err := messenger.OutcomeOf(receipt, err)
	if err != nil {
		return came, err
	}
	policy := d.hook.replies.PolicyOf(d.settings.Replies.Send, came, from.sentAt)
	if came == messenger.OutcomeWrongMethod && policy != messenger.NoReply { // the code is that of a request, so its sender is no stranger
		policy = messenger.ReplyToUser
	}
	switch {
	case policy == messenger.ReplyToStranger:
		d.replyToStranger(from)
	case messenger.IsRepeated(came, receipt):
		d.hook.replies.SkipRepeated()
	case policy == messenger.ReplyToUser:
		d.replyAboutRequest(from, receipt.Request, came)
	}
	return came, nil
}

// Users who have a username may hide their number from businesses. What is left of them then is a business-scoped user id
// (Meta, "Business-scoped user IDs": a country, a dot and up to 128 letters and digits; with ENT for a parent portfolio).
// Some partners of Meta put it where the number stood.
var (
	userID   = regexp.MustCompile(`^[A-Z]{2}\.(ENT\.)?[A-Za-z0-9]{1,128}$`)
	waNumber = regexp.MustCompile(`^[0-9]{5,15}$`)
)

// sender is who sent a message, as Meta has it in the message itself.
type sender struct {
	number phone.Number // zero if hidden
	userID string       // empty if Meta reports none
	sentAt time.Time    // when the message was sent
}

// readSender returns the sender of the message; false if it is not known.
func (m *message) readSender() (sender, bool) {
	s := sender{sentAt: m.Timestamp.Time}
	if userID.MatchString(m.FromUserID) {
		s.userID = m.FromUserID
	}
	switch {
	case waNumber.MatchString(m.From):
		if number, err := phone.ParseWhatsApp(m.From); err == nil {
			s.number = number
		}
	case userID.MatchString(m.From):
		if s.userID != "" && s.userID != m.From {
			return sender{}, false
		}
		s.userID = m.From
	}
	return s, !s.number.IsZero() || s.userID != ""
}

// key identifies the sender within one process. It holds a number or an id, so it is hashed before it is kept.
func (s sender) key() string {
	if s.userID != "" {
		return s.userID
	}
	return s.number.Digits()
}

// keys returns all that identifies the sender, key among them.
func (s sender) keys() []string {
	var all []string
	if s.userID != "" {
		all = append(all, s.userID)
	}
	if !s.number.IsZero() {
		all = append(all, s.number.Digits())
	}
	return all
}

// senderKey returns the key of the sender; empty if it is not known.
func (m *message) senderKey() string {
	from, _ := m.readSender()
	return from.key()
}

// recipient returns where a reply goes.
func (s sender) recipient() Recipient {
	if !s.number.IsZero() {
		return ToNumber(s.number)
	}
	return ToUserID(s.userID)
}

// Recipient is the user whom a message goes to. It prints as a placeholder.
type Recipient struct{ redact.Value[address] }

type address struct {
	number string
	userID string
}

// ToNumber returns the user of a number.
func ToNumber(n phone.Number) Recipient {
	return Recipient{redact.New(address{number: n.Digits()})}
}

// ToUserID returns the user of a business-scoped user id.
func ToUserID(id string) Recipient {
	return Recipient{redact.New(address{userID: id})}
}
