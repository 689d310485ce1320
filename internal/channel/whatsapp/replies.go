package whatsapp

import (
	"cmp"
	"context"

	"github.com/phoneproof/phoneproof/internal/channel/reply"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// The built-in texts. None tells a number, a code, or whether anybody else is involved; none asks for anything that a
// fraudster could use.
const (
	textVerified     = "Thank you, your phone number is confirmed. You can return to the app or website now."
	textWrongNumber  = "We could not confirm this phone number: the code belongs to a different one. Please send it from the phone number that you entered."
	textExpired      = "This code is no longer valid. Please return to the app or website and get a new one."
	textUnknown      = "We found no valid code in your message. This chat only confirms phone numbers, and messages here are not read. If you did not ask to confirm your phone number, you can ignore this."
	textShareContact = "WhatsApp hides your phone number from us. To confirm it, please share it with the button below, but only if you started this yourself."
	textNumberHidden = "WhatsApp hides your phone number from us because you use a username, so we cannot confirm it here. Please return to the app or website and choose another way."
)

// texts are the texts of one project.
type texts struct{ settings.Replies }

func (d *delivery) texts() texts { return texts{d.settings.Replies} }

func (t texts) shareContact() string { return cmp.Or(t.ShareContact, textShareContact) }
func (t texts) unknown() string      { return cmp.Or(t.Unknown, textUnknown) }

// of returns what a user is told of an outcome.
func (t texts) of(o outcome) string {
	switch o {
	case outcomeVerified:
		return cmp.Or(t.Verified, textVerified)
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

// reply tells a sender what his code came to, once for each request and outcome: neither redeliveries nor a sender who
// repeats himself get more out of us.
func (d *delivery) reply(to sender, requestID string, o outcome) {
	words := []string{to.key(), requestID, string(o)}
	if !d.hook.replied.Due(d.hook.clock.Now(), words...) {
		d.hook.metrics.replies.WithLabelValues(replyRepeated).Inc()
		return
	}
	if !d.enqueue(to, d.texts().of(o)) {
		d.hook.replied.Forget(words...)
	}
}

// replyToStranger tells a sender whose message holds no known code, if he was not told so within a day and the other
// strangers leave room for it.
func (d *delivery) replyToStranger(to sender) {
	switch d.hook.strangers.Judge(d.hook.clock.Now(), to.key()) {
	case reply.Repeated:
		d.hook.metrics.replies.WithLabelValues(replyRepeated).Inc()
	case reply.Limited:
		d.hook.metrics.replies.WithLabelValues(replyLimited).Inc()
	case reply.Answer:
		if !d.enqueue(to, d.texts().unknown()) {
			d.hook.strangers.Forget(to.key())
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
