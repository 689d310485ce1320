package telegram

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/phone"
)

// inbound is a message that may count.
type inbound struct {
	// sender is the user, and the private chat with the user: they have the same id.
	sender int64
	sentAt time.Time
	// isContact is set for a contact: the sender's own, with number, unless it is refused. Otherwise it is a text.
	isContact bool
	number    phone.Number
	// promptedAt is when the message was sent that the contact answers; zero if it answers none.
	promptedAt time.Time
	text       string
	// isCommand is set if text is the payload of /start, isNotMe if it is the title of the button that declines.
	isCommand, isNotMe bool
	// isRefused is set for a contact that never counts.
	isRefused bool
}

// judgeMessage returns why a message cannot count, before anything is looked up; empty if it may. in.sender is zero if no user
// is to be answered.
//
// A naive bot is fooled by contacts: any client can send any number as a contact, but only Telegram's server
// sets whose it is. So the contact must name its user, and that user must be the sender.
func judgeMessage(m *message, botUsername string) (in inbound, why messenger.Outcome) {
	if why := judgeSender(m); why != "" {
		return inbound{}, why
	}
	in = inbound{sender: m.From.ID, sentAt: time.Unix(m.Date, 0), isContact: m.Contact != nil}
	switch {
	case bool(m.ForwardOrigin || m.ForwardDate):
		return in, messenger.OutcomeForwarded
	case in.isContact:
		if m.ReplyTo != nil {
			in.promptedAt = time.Unix(m.ReplyTo.Date, 0)
		}
		in.number, why = judgeContact(m.Contact, in.sender)
		return in, why
	case m.Text == "":
		return in, messenger.OutcomeOtherType
	default:
		in.isCommand = strings.HasPrefix(strings.TrimSpace(m.Text), "/")
		in.text, why = extractPayload(m.Text, botUsername)
		return in, why
	}
}

// judgeSender refuses what a person did not write in the private chat with the bot, just so.
func judgeSender(m *message) messenger.Outcome {
	switch {
	case m.From == nil, m.From.ID <= 0, m.Chat.Type != "private", m.Chat.ID != m.From.ID:
		return messenger.OutcomeNotPrivate
	case m.From.IsBot:
		return messenger.OutcomeBot
	case bool(m.EditDate || m.ViaBot || m.SenderChat || m.SenderBusinessBot || m.BusinessConnectionID ||
		m.GuestQueryID || m.GuestBotCallerUser || m.GuestBotCallerChat):
		return messenger.OutcomeIndirect
	default:
		return ""
	}
}

func judgeContact(c *contact, sender int64) (phone.Number, messenger.Outcome) {
	switch {
	case c.UserID == nil:
		return phone.Number{}, messenger.OutcomeContactWithoutUser
	case *c.UserID != sender:
		return phone.Number{}, messenger.OutcomeContactOfAnother
	}
	switch number, err := phone.ParseTelegram(c.PhoneNumber); {
	case err == nil:
		return number, ""
	case isAnonymous(c.PhoneNumber):
		return phone.Number{}, messenger.OutcomeAnonymousNumber
	default:
		return phone.Number{}, messenger.OutcomeBadNumber
	}
}

// isAnonymous reports whether the digits of a number begin as those of an anonymous one. Clients show it in groups, which cannot be parsed.
func isAnonymous(contactPhone string) bool {
	digits := strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, contactPhone)
	return strings.HasPrefix(digits, "888")
}

// extractPayload returns the part of a text that may hold a code: the rest after /start, or a whole text that is no command.
func extractPayload(text, botUsername string) (string, messenger.Outcome) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "/") {
		return text, ""
	}
	command, rest := text, ""
	if end := strings.IndexAny(text, " \t\r\n\u00a0"); end >= 0 {
		command, rest = text[:end], strings.TrimSpace(text[end:])
	}
	command, bot, addressed := strings.Cut(command, "@")
	switch {
	case !strings.EqualFold(command, "/start"), addressed && !strings.EqualFold(bot, botUsername):
		return "", messenger.OutcomeOtherCommand
	case utf8.RuneCountInString(rest) > maxPayload:
		return "", messenger.OutcomePayloadTooLong
	default:
		return rest, ""
	}
}
