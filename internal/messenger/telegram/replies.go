package telegram

import (
	"cmp"
	"context"
	"fmt"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// The built-in texts. They reveal nothing of the other side: not the number that is claimed, nor the code. Those with a place in
// them name who asks and what it means, because links can be forwarded.
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

// replyToMessage answers a message, best effort. The replica and the message that verified a number are the ones to report it, so a
// copy of the message, at whatever replica, is not answered again.
func (c *Channel) replyToMessage(s *settings.Settings, in inbound, bound []string, became messenger.Outcome, receipt verification.Receipt) {
	if in.sender == 0 {
		return
	}
	switch c.replies.PolicyOf(s.Replies.Send, became) {
	case messenger.NoReply:
	case messenger.ReplyToUser:
		if became == messenger.OutcomeVerified && !receipt.Changed {
			c.replies.SkipRepeated()
			return
		}
		c.replies.Reply(c.replyWith(s, in, userText(s, became, &receipt.Request), KeyboardRemove))
	case messenger.ReplyToStranger:
		// Who shared the contact of another may still press the button.
		keyboard := KeyboardAsIs
		if became == messenger.OutcomeUnknownCode && in.isContact {
			keyboard = KeyboardRemove
		}
		c.replies.ReplyToStranger(c.replyWith(s, in, cmp.Or(s.Replies.Unknown, textUnknown), keyboard), bound[0])
	}
}

// userText returns what a user gets to read about a request.
func userText(s *settings.Settings, became messenger.Outcome, r *verification.Request) string {
	switch became {
	case messenger.OutcomeVerified:
		return cmp.Or(s.Replies.Verified, fmt.Sprintf(textVerified, s.DisplayNameOf(r)))
	case messenger.OutcomeTooLate:
		return cmp.Or(s.Replies.Expired, textExpired)
	default:
		return cmp.Or(s.Replies.WrongNumber, textWrongNumber)
	}
}

func (c *Channel) replyWith(s *settings.Settings, in inbound, text string, keyboard Keyboard) messenger.SendFunc {
	account, chat := s.Telegram, in.sender
	return func(ctx context.Context) error { return c.client.SendMessage(ctx, account, chat, text, keyboard) }
}
