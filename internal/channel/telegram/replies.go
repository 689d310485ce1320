package telegram

import (
	"cmp"
	"context"
	"fmt"

	"github.com/phoneproof/phoneproof/internal/settings"
)

// The built-in texts. They say nothing of the other side: not the number that is claimed, nor the code. The one that asks
// for the contact says who asks and what it means, because links can be sent on to others.
const (
	textVerified     = "Your phone number is confirmed. You can go back to where you came from."
	textWrongNumber  = "This number is not the one that was to be confirmed. Nothing was changed."
	textExpired      = "This request is no longer valid. Please start again where you came from."
	textUnknown      = "This message confirms nothing. To confirm your number, open the link from the app or website that asks for it, and share your own contact with the button."
	textShareContact = "%s asks to confirm your phone number.\n\nIf you have just started this yourself, tap the button below to share your number. If somebody sent you here, do nothing: close this chat."
	buttonText       = "Share my phone number"
)

// reply is a text that waits to be sent.
type reply struct {
	account  *settings.Telegram
	chat     int64
	text     string
	keyboard Keyboard
}

// shareText returns the text that asks for the sender's contact.
func shareText(s *settings.Settings) string {
	return cmp.Or(s.Replies.ShareContact, fmt.Sprintf(textShareContact, cmp.Or(s.DisplayName, "An app or website")))
}

// reply answers a message, best effort: what cannot wait in the queue is not sent.
func (c *Channel) reply(s *settings.Settings, in inbound, bound []string, became outcome) {
	if in.sender == 0 {
		return
	}
	r := reply{account: s.Telegram, chat: in.sender, keyboard: KeyboardRemove}
	switch became {
	case outcomeVerified:
		r.text = cmp.Or(s.Replies.Verified, textVerified)
	case outcomeWrongNumber:
		r.text = cmp.Or(s.Replies.WrongNumber, textWrongNumber)
	case outcomeTooLate:
		r.text = cmp.Or(s.Replies.Expired, textExpired)
	case outcomeNeedContact, givenUpPrompt, refusedLimited, refusedByStore:
		return
	default:
		// Whoever shared another's contact may still press the button.
		r.text, r.keyboard = cmp.Or(s.Replies.Unknown, textUnknown), KeyboardAsIs
		if became == outcomeUnknown && in.isContact {
			r.keyboard = KeyboardRemove
		}
		if !c.strangers.may(bound[0], c.clock.Now()) {
			c.metrics.replies.WithLabelValues(replyLimited).Inc()
			return
		}
	}
	select {
	case c.replies <- r:
	default:
		c.metrics.replies.WithLabelValues(replyDropped).Inc()
	}
}

// sendReplies is one worker. When ctx ends it sends what waits, because the messages are acknowledged, but not for long.
func (c *Channel) sendReplies(ctx context.Context) {
	sending := context.WithoutCancel(ctx)
	for ctx.Err() == nil {
		select {
		case r := <-c.replies:
			c.send(sending, r)
		case <-ctx.Done():
		}
	}
	sending, cancel := context.WithTimeout(sending, drainTimeout)
	defer cancel()
	for sending.Err() == nil {
		select {
		case r := <-c.replies:
			c.send(sending, r)
		default:
			return
		}
	}
}

func (c *Channel) send(ctx context.Context, r reply) {
	ctx, cancel := context.WithTimeout(ctx, promptTimeout)
	defer cancel()
	err := c.client.SendMessage(ctx, r.account, r.chat, r.text, r.keyboard)
	c.metrics.reply(err)
	if err != nil {
		c.log.V(1).Info("telegram reply not sent", "cause", err.Error())
	}
}
