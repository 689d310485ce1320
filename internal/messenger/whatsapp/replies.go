package whatsapp

import (
	"cmp"
	"context"
	"fmt"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// The built-in texts. None tells a number or a code; none asks for anything that a fraudster could use. Those with a place
// in them name who asks, because a link can be passed on.
const (
	textVerified     = "Your phone number is confirmed to %[1]s. You can return to the app or website now.\n\nIf you did not start this yourself, tell %[1]s at once: someone else may be using your number there."
	textConfirm      = "You are about to confirm your phone number to %[1]s.\n\nIf you have just started this yourself, tap the button below. If someone else sent you here or gave you the message to send, do nothing: nothing is confirmed without the button."
	textTextChanged  = "Nothing was confirmed, because this is not the message that was prepared for you. If you started this yourself, return to the app or website, open the link again and send the message as it is."
	textTapRefused   = "Nothing was confirmed, because this button is no longer valid. If you started this yourself, return to the app or website, open the link again and send the message as it is."
	buttonConfirm    = "Confirm"
	textWrongNumber  = "We could not confirm this phone number: the code belongs to a different one. Please send it from the phone number that you entered."
	textExpired      = "This code is no longer valid. Please return to the app or website and get a new one."
	textUnknown      = "We found no valid code in your message. This chat only confirms phone numbers, and messages here are not read. If you did not ask to confirm your phone number, you can ignore this."
	textShareContact = "%[1]s asks to confirm your phone number, which WhatsApp hides from us.\n\nIf you have just started this yourself, share it with the button below. If someone else sent you here, do nothing."
	textNumberHidden = "WhatsApp hides your phone number from us because you use a username, so we cannot confirm it here. Please return to the app or website and choose another way."
)

// texts are the texts of one project.
type texts struct{ settings.Replies }

func (d *delivery) texts() texts { return texts{d.settings.Replies} }

func (t texts) unknown() string { return cmp.Or(t.Unknown, textUnknown) }

// shareContact returns what asks for a contact in the name of a project.
func (t texts) shareContact(name string) string {
	return cmp.Or(t.ShareContact, fmt.Sprintf(textShareContact, name))
}

// of returns what a user is told of an outcome in the name of a project.
func (t texts) of(o outcome, name string) string {
	switch o {
	case outcomeVerified:
		return cmp.Or(t.Verified, fmt.Sprintf(textVerified, name))
	case outcomeTextChanged:
		return textTextChanged
	case outcomeTapRefused:
		return textTapRefused
	case outcomeWrongNumber:
		return cmp.Or(t.WrongNumber, textWrongNumber)
	case outcomeTooLate:
		return cmp.Or(t.Expired, textExpired)
	case outcomeNumberHidden:
		return cmp.Or(t.NumberHidden, textNumberHidden)
	default: // a code for another messenger among them: to this chat it is none
		return t.unknown()
	}
}

// reply sends a sender the outcome of the code, once for each request and outcome: neither redeliveries nor a sender who
// repeats the code cause another one.
func (d *delivery) reply(to sender, about verification.Request, o outcome) {
	words := []string{to.key(), about.ID, string(o)}
	if !d.hook.replied.TryStart(d.hook.clock.Now(), words...) {
		d.hook.metrics.replies.WithLabelValues(replyRepeated).Inc()
		return
	}
	if !d.enqueue(to, d.texts().of(o, d.settings.DisplayNameOf(&about))) {
		d.hook.replied.Undo(words...)
	}
}

// replyToStranger tells a sender whose message holds no known code, unless that was said within a day and the other
// strangers leave room for it.
func (d *delivery) replyToStranger(to sender) {
	switch d.hook.strangers.Decide(d.hook.clock.Now(), to.key()) {
	case messenger.StrangerAnswered:
		d.hook.metrics.replies.WithLabelValues(replyRepeated).Inc()
	case messenger.StrangersLimited:
		d.hook.metrics.replies.WithLabelValues(replyLimited).Inc()
	case messenger.AnswerStranger:
		if !d.enqueue(to, d.texts().unknown()) {
			d.hook.strangers.Undo(to.key())
		}
	}
}

// enqueue hands a reply to whoever sends them; false if the queue is full. Replies are best effort, answers to Meta are
// not.
func (d *delivery) enqueue(to sender, text string) bool {
	hook, account, recipient := d.hook, d.account, to.recipient()
	added := hook.replies.Add(func(ctx context.Context) { hook.send(ctx, account, recipient, text) })
	if !added {
		hook.metrics.replies.WithLabelValues(replyDropped).Inc()
	}
	return added
}

func (h *Hook) send(ctx context.Context, account *settings.WhatsApp, to Recipient, text string) {
	if err := h.client.SendText(ctx, account, to, text); err != nil {
		h.metrics.replies.WithLabelValues(replyFailed).Inc()
		h.log.Info("a WhatsApp reply was not sent", "reason", err.Error())
		return
	}
	h.metrics.replies.WithLabelValues(replySent).Inc()
}
