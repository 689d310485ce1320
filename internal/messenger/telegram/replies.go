package telegram

import (
	"cmp"
	"context"
	"fmt"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// The built-in texts. They say nothing of the other side: not the number that is claimed, nor the code. Those with a place in
// them say who asks and what it means, because links can be sent on to others.
const (
	textVerified     = "Your phone number is confirmed to %[1]s. You can return to the app or website now.\n\nIf you did not start this yourself, tell %[1]s at once: someone else may be using your number there."
	textWrongNumber  = "This phone number does not match the request, so nothing was confirmed."
	textExpired      = "This request is no longer valid. Please start again in the app or on the website."
	textUnknown      = "This message does not confirm anything. To confirm your phone number, open the link from the app or website that asked for it, then share your own contact with the button."
	textShareContact = "%s asks to confirm your phone number.\n\nIf you have just started this yourself, tap the button below to share your number. If someone else sent you here, do nothing and close this chat.\n\nThis replaces any earlier request in this chat."
	buttonText       = "Share my phone number"
)

// shareText returns the text that asks for the sender's contact.
func shareText(s *settings.Settings, r *verification.Request) string {
	return cmp.Or(s.Replies.ShareContact, fmt.Sprintf(textShareContact, s.DisplayNameOf(r)))
}

// reply answers a message, best effort: what cannot wait in the queue is not sent.
//
// That a number was verified is told by whoever verified it, so a copy of the message, at whatever replica, is not
// answered again.
func (c *Channel) reply(s *settings.Settings, in inbound, bound []string, became outcome, receipt verification.Receipt) {
	if in.sender == 0 || became == outcomeVerified && !receipt.Changed {
		return
	}
	text, keyboard := "", KeyboardRemove
	switch became {
	case outcomeVerified:
		text = cmp.Or(s.Replies.Verified, fmt.Sprintf(textVerified, s.DisplayNameOf(&receipt.Request)))
	case outcomeWrongNumber:
		text = cmp.Or(s.Replies.WrongNumber, textWrongNumber)
	case outcomeTooLate:
		text = cmp.Or(s.Replies.Expired, textExpired)
	case outcomeNeedContact, givenUpPrompt, refusedLimited, refusedByStore:
		return
	default:
		// Whoever shared another's contact may still press the button.
		text, keyboard = cmp.Or(s.Replies.Unknown, textUnknown), KeyboardAsIs
		if became == outcomeUnknown && in.isContact {
			keyboard = KeyboardRemove
		}
		if c.strangers.Decide(c.clock.Now(), bound[0]) != messenger.AnswerStranger {
			c.metrics.replies.WithLabelValues(replyLimited).Inc()
			return
		}
	}
	account, chat := s.Telegram, in.sender
	if !c.replies.Add(func(ctx context.Context) { c.send(ctx, account, chat, text, keyboard) }) {
		c.metrics.replies.WithLabelValues(replyDropped).Inc()
	}
}

func (c *Channel) send(ctx context.Context, account *settings.Telegram, chat int64, text string, keyboard Keyboard) {
	err := c.client.SendMessage(ctx, account, chat, text, keyboard)
	c.metrics.reply(err)
	if err != nil {
		c.log.V(1).Info("telegram reply not sent", "cause", err.Error())
	}
}
