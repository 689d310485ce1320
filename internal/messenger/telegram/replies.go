package telegram

import (
	"context"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/texts"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// shareText returns the text that asks for the sender's contact.
func shareText(s *settings.Settings, r *verification.Request) string {
	return texts.Fill(s.TextsIn(r.Locale).TelegramShareContact, s.DisplayNameOf(r))
}

// replyToMessage answers a message, best effort. The replica and the message that verified or declined a request are the ones to report
// it, so a copy of the message, at whatever replica, is not answered again.
func (c *Channel) replyToMessage(s *settings.Settings, in inbound, bound []string, became messenger.Outcome, receipt verification.Receipt) {
	if in.sender == 0 {
		return
	}
	// It is trouble, so projects that answer no success answer this.
	tooLateToDecline := in.isNotMe && became == messenger.OutcomeVerified
	answered := became
	if tooLateToDecline {
		answered = messenger.OutcomeDeclined
	}
	policy := c.replies.PolicyOf(s.Replies.Send, answered, in.sentAt)
	switch {
	case policy == messenger.NoReply:
	case in.isRefused && receipt.Request.Phase == verification.Pending:
		c.replyToRefusal(s, in, became, receipt)
	case policy == messenger.ReplyToUser:
		if !tooLateToDecline && messenger.IsRepeated(became, receipt) {
			c.replies.SkipRepeated()
			return
		}
		c.replies.Reply(c.replyWith(s, in, userText(s, became, &receipt.Request), Keyboard{Remove: true}))
	case policy == messenger.ReplyToStranger:
		// A sender who shared another contact may still press the button.
		keyboard := Keyboard{Remove: became == messenger.OutcomeUnknownCode && in.isContact}
		// The language is known if the code is that of a request for another messenger.
		text := texts.Fill(s.TextsIn(receipt.Request.Locale).TelegramUnknown, s.DisplayName)
		c.replies.ReplyToStranger(c.replyWith(s, in, text, keyboard), bound[0])
	}
}

// replyToRefusal replies with the contact that left the hint, and so once over all replicas. Its sender may still press the button.
func (c *Channel) replyToRefusal(s *settings.Settings, in inbound, refused messenger.Outcome, receipt verification.Receipt) {
	if !receipt.Hinted {
		c.replies.SkipRepeated()
		return
	}
	t := s.TextsIn(receipt.Request.Locale)
	text := t.ContactRefused
	if refused == messenger.OutcomeAnonymousNumber {
		text = t.NumberAnonymous
	}
	c.replies.Reply(c.replyWith(s, in, texts.Fill(text, s.DisplayNameOf(&receipt.Request)), Keyboard{}))
}

// userText returns what a user gets to read about a request.
func userText(s *settings.Settings, became messenger.Outcome, r *verification.Request) string {
	t := s.TextsIn(r.Locale)
	switch became {
	case messenger.OutcomeVerified:
		return texts.Fill(t.Verified, s.DisplayNameOf(r))
	case messenger.OutcomeDeclined:
		return texts.Fill(t.Declined, s.DisplayNameOf(r))
	case messenger.OutcomeTooLate:
		return texts.Fill(t.TelegramExpired, s.DisplayNameOf(r))
	default:
		return texts.Fill(t.TelegramWrongNumber, s.DisplayNameOf(r))
	}
}

func (c *Channel) replyWith(s *settings.Settings, in inbound, text string, keyboard Keyboard) messenger.SendFunc {
	account, chat := s.Telegram, in.sender
	return func(ctx context.Context) error { return c.client.SendMessage(ctx, account, chat, text, keyboard) }
}
