package whatsapp

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// typeContacts is the type of messages with contacts.
const typeContacts = "contacts"

// delivery is one webhook at work. Its settings and time are those of the moment it came in.
type delivery struct {
	hook     *Hook
	settings *settings.Settings
	account  *settings.WhatsApp
	now      time.Time
}

// receive does all that a message asks for. An error means that the message must come again.
func (d *delivery) receive(ctx context.Context, m *message) (outcome, error) {
	from, known := m.sender()
	text, ok, err := m.text()
	switch {
	case err != nil:
		return outcomeMalformed, nil //nolint:nilerr // it would be as malformed the next time
	case !ok && m.Type != typeContacts:
		return outcomeOtherType, nil
	case m.grouped():
		return outcomeGroup, nil
	case bool(m.Context.Forwarded || m.Context.FrequentlyForwarded):
		return outcomeForwarded, nil
	case d.echo(m, from):
		return outcomeEcho, nil
	case !known:
		return outcomeNoSender, nil
	case m.Timestamp.IsZero():
		return outcomeNoTime, nil
	case d.hook.senders.Exceeded(d.now, from.key()):
		return outcomeLimited, nil
	}
	came, err := d.receiveFrom(ctx, m, from, text)
	if err == nil { // a message that comes again because we failed counts once
		d.hook.senders.Count(d.now, from.key())
	}
	return came, err
}

// receiveFrom does what a message asks for that may count.
func (d *delivery) receiveFrom(ctx context.Context, m *message, from sender, text string) (outcome, error) {
	tap, tapped := m.confirmationTap()
	switch {
	case m.Type == typeContacts:
		return d.receiveContact(ctx, m, from)
	case tapped:
		return d.receiveTap(ctx, m, from, tap)
	case !from.number.IsZero():
		return d.receiveText(ctx, m, from, text)
	case d.account.AcceptSharedContact:
		return d.receiveHidden(ctx, m, from, text)
	default:
		return d.refuseHidden(ctx, from, text), nil
	}
}

// grouped tells whether the message was sent to a group. Groups have a group_id in the message; in the context it was in
// the On-Premises API.
func (m *message) grouped() bool { return present(m.GroupID) || present(m.Context.GroupID) }

// echo tells whether the sender is the business itself.
func (d *delivery) echo(m *message, from sender) bool {
	if m.From != "" && m.From == m.businessNumber {
		return true
	}
	business, err := phone.ParseWhatsApp(onlyDigits(d.account.PhoneNumber))
	return err == nil && !from.number.IsZero() && phone.Same(business, from.number)
}

// codeBreak stands between two texts of one message, so that no code is read across them.
const codeBreak = " | "

// text returns what a message says; false if its type says nothing.
func (m *message) text() (string, bool, error) {
	switch m.Type {
	case "text":
		var text struct {
			Body string `json:"body"`
		}
		err := json.Unmarshal(m.Text, &text)
		return text.Body, true, err
	case "button":
		// The answer to a button of a template: payload is what the business put there, text what the user saw.
		var button struct {
			Payload string `json:"payload"`
			Text    string `json:"text"`
		}
		err := json.Unmarshal(m.Button, &button)
		return button.Payload + codeBreak + button.Text, true, err
	case "interactive":
		return m.interactive()
	default:
		return "", false, nil
	}
}

// interactiveReply is the answer to an interactive message of ours.
type interactiveReply struct {
	Type        string `json:"type"`
	ButtonReply choice `json:"button_reply"`
	ListReply   choice `json:"list_reply"`
}

type choice struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

func (m *message) interactive() (string, bool, error) {
	var reply interactiveReply
	if err := json.Unmarshal(m.Interactive, &reply); err != nil {
		return "", false, err
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

// evidence returns what the message proves about a number.
func (m *message) evidence(number phone.Number, assurance verification.Assurance) verification.Evidence {
	return verification.Evidence{
		Method: verification.WhatsApp, Sender: number, SentAt: m.Timestamp.Time, Assurance: assurance,
	}
}

// eventWanted tells whether a verification is to be reported to the project's webhook.
func (d *delivery) eventWanted() bool { return d.settings.EventPolicy() != verification.EventsOff }

// receiveText takes a text from a sender whose number Meta told.
func (d *delivery) receiveText(ctx context.Context, m *message, from sender, text string) (outcome, error) {
	in := verification.Message{Evidence: m.evidence(from.number, verification.AssuranceUsual), Text: text}
	if !d.account.AcceptAnyText {
		bound := confirmationBindings(d.account, from, m.ID, d.now)
		if len(bound) == 0 {
			return outcomeFailed, errSecretLost
		}
		in.Binding, in.OlderBindings, in.Prepared = bound[0], bound[1:], d.prepared
	}
	receipt, err := d.hook.service.Receive(ctx, in, d.eventWanted())
	if err == nil && receipt.Outcome == verification.OutcomeNeedConfirmation {
		return d.askConfirmation(ctx, from, receipt)
	}
	return d.settle(from, receipt, err)
}

// prepared returns the text that the user of a request was to send.
func (d *delivery) prepared(r *verification.Request, code verification.Code) string {
	return ExpectedText(d.settings.DisplayNameOf(r), code)
}

// errSecretLost says that the secret that the webhook was authenticated with is gone.
var errSecretLost = errors.New("the app secret was lost meanwhile")

// receiveHidden takes a text from a sender without a number, and asks for it.
func (d *delivery) receiveHidden(ctx context.Context, m *message, from sender, text string) (outcome, error) {
	known := bindings(d.account, from.userID, d.now)
	if len(known) == 0 {
		return outcomeFailed, errSecretLost
	}
	receipt, err := d.hook.service.Receive(ctx, verification.Message{
		Evidence: m.evidence(phone.Number{}, verification.AssuranceUsual), Text: text, Binding: known[0],
	}, d.eventWanted())
	if err == nil && receipt.Outcome == verification.OutcomeNeedContact {
		return d.askContact(ctx, from, known[0], receipt.Request)
	}
	return d.settle(from, receipt, err)
}

// refuseHidden tells a sender without a number why that fails. Whether the code is one that waits is looked up only to
// choose the reply.
func (d *delivery) refuseHidden(ctx context.Context, from sender, text string) outcome {
	ctx = verification.WithCaller(ctx, verification.Sender(from.key()))
	code, found := d.hook.codes(d.settings.Project).Extract(text)
	if !found {
		d.replyToStranger(from)
		return outcomeNoCode
	}
	request, err := d.hook.service.Status(ctx, d.hook.codes(d.settings.Project).RequestID(code))
	switch {
	case err != nil: // unknown, or the store is away: nothing was to be stored
		d.replyToStranger(from)
	case request.PhaseAt(d.now) == verification.Pending:
		d.reply(from, request, outcomeNumberHidden)
	default:
		d.reply(from, request, outcomeTooLate)
	}
	return outcomeNumberHidden
}

// settle sees to the reply. That a number was verified is told by whoever verified it, so a copy of the message, at
// whatever replica, is not answered again.
func (d *delivery) settle(from sender, receipt verification.Receipt, err error) (outcome, error) {
	if errors.Is(err, verification.ErrContent) {
		return outcomeContentRefused, nil
	}
	if err != nil {
		return outcomeFailed, err
	}
	came := outcomeOf(receipt.Outcome)
	switch {
	case came == outcomeNoCode, came == outcomeUnknownCode:
		d.replyToStranger(from)
	case came == outcomeNeedContact, came == outcomeLimited: // no reply
	case came == outcomeVerified && !receipt.Changed:
		d.hook.metrics.replies.WithLabelValues(replyRepeated).Inc()
	default:
		d.reply(from, receipt.Request, came)
	}
	return came, nil
}
