package whatsapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	case d.hook.senders.Full(d.now, from.key()):
		return outcomeLimited, nil
	}
	came, err := d.receiveFrom(ctx, m, from, text)
	if err == nil { // a message that comes again because we failed counts once
		d.hook.senders.Add(d.now, from.key())
	}
	return came, err
}

// receiveFrom does what a message asks for that may count.
func (d *delivery) receiveFrom(ctx context.Context, m *message, from sender, text string) (outcome, error) {
	switch {
	case m.Type == typeContacts:
		return d.receiveContact(ctx, m, from)
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

func (m *message) interactive() (string, bool, error) {
	type choice struct {
		ID    string `json:"id"`
		Title string `json:"title"`
	}
	var reply struct {
		Type        string `json:"type"`
		ButtonReply choice `json:"button_reply"`
		ListReply   choice `json:"list_reply"`
	}
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
	receipt, err := d.hook.service.Receive(ctx, verification.Message{
		Evidence: m.evidence(from.number, verification.AssuranceUsual), Text: text,
	}, d.eventWanted())
	return d.settle(from, receipt, err)
}

// receiveHidden takes a text from a sender without a number, and asks him for it.
func (d *delivery) receiveHidden(ctx context.Context, m *message, from sender, text string) (outcome, error) {
	known := bindings(d.account, from.userID, d.now)
	if len(known) == 0 {
		return outcomeFailed, errors.New("the app secret was lost meanwhile")
	}
	receipt, err := d.hook.service.Receive(ctx, verification.Message{
		Evidence: m.evidence(phone.Number{}, verification.AssuranceUsual), Text: text, Binding: known[0],
	}, d.eventWanted())
	if err == nil && receipt.Outcome == verification.OutcomeNeedContact {
		return outcomeNeedContact, d.prompt(ctx, from, known[0], receipt.Request.ID)
	}
	return d.settle(from, receipt, err)
}

// prompt asks the sender for his number. The answer to Meta waits for it: without the prompt the user is stuck, and a
// redelivery of his message is the only thing that asks him again.
func (d *delivery) prompt(ctx context.Context, to sender, binding, requestID string) error {
	if !d.hook.prompted.Due(d.hook.clock.Now(), binding, requestID) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), promptTimeout)
	defer cancel()
	text := d.texts().shareContact()
	if err := d.hook.client.RequestContact(ctx, d.account, to.recipient(), text); err != nil {
		d.hook.prompted.Forget(binding, requestID)
		d.hook.metrics.replies.WithLabelValues(replyFailed).Inc()
		return fmt.Errorf("ask for a contact: %w", err)
	}
	d.hook.metrics.replies.WithLabelValues(replySent).Inc()
	return nil
}

// refuseHidden tells a sender without a number why that fails. Whether the code is one that waits is looked up only to
// choose the reply.
func (d *delivery) refuseHidden(ctx context.Context, from sender, text string) outcome {
	ctx = verification.WithCaller(ctx, verification.Sender(from.key()))
	codes := d.hook.codes(d.settings.Project).Extract(text)
	if len(codes) == 0 {
		d.replyToStranger(from)
		return outcomeNoCode
	}
	for _, code := range codes {
		request, err := d.hook.service.Status(ctx, d.hook.codes(d.settings.Project).RequestID(code))
		if err != nil {
			continue // unknown, or the store is away: nothing was to be stored
		}
		if request.PhaseAt(d.now) == verification.Pending {
			d.reply(from, request.ID, outcomeNumberHidden)
		} else {
			d.reply(from, request.ID, outcomeTooLate)
		}
		return outcomeNumberHidden
	}
	d.replyToStranger(from)
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
		d.reply(from, receipt.Request.ID, came)
	}
	return came, nil
}
