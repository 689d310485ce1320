package telegram

import (
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// outcome is what became of an update. It is a label of metrics and a word in logs, so it is a closed set.
type outcome string

// What becomes of updates that reach the domain.
const (
	outcomeVerified    outcome = "verified"
	outcomeNeedContact outcome = "need_contact"
	outcomeWrongNumber outcome = "wrong_number"
	outcomeTooLate     outcome = "too_late"
	outcomeUnknown     outcome = "unknown"
	outcomeNothing     outcome = "nothing"
	outcomeWrongMethod outcome = "wrong_method"
)

// Why updates do not reach it, or nothing comes of it. All but those that failed are final.
const (
	refusedMalformed outcome = "malformed"        // not what the reference says
	refusedKind      outcome = "other_kind"       // no new message: edited_message, channel_post, ...
	refusedChat      outcome = "not_private"      // a group, a channel, or a message without a sender
	refusedBot       outcome = "bot"              // the sender is a bot
	refusedIndirect  outcome = "indirect"         // edited, or not written to the bot by the sender
	refusedForwarded outcome = "forwarded"        // somebody else wrote it first
	refusedCommand   outcome = "other_command"    // not /start, or another bot's
	refusedPayload   outcome = "payload_too_long" // longer than a deep link can carry
	refusedNoUser    outcome = "contact_without_user"
	refusedForeign   outcome = "contact_of_another"
	refusedNumber    outcome = "bad_number"
	refusedAnonymous outcome = "anonymous_number" // +888: no telephone line
	refusedEmpty     outcome = "no_text"
	refusedLimited   outcome = "limited"      // too many of that sender
	refusedByStore   outcome = "not_storable" // the store would refuse it again
	givenUpPrompt    outcome = "no_prompt"    // the chat cannot be written to
	failedStore      outcome = "not_stored"   // to be delivered again
	failedPrompt     outcome = "prompt_fail"  // to be delivered again
	panicked         outcome = "panicked"     // met a bug of ours
)

// outcomes names what the domain says.
var outcomes = map[verification.Outcome]outcome{
	verification.OutcomeNothing:     outcomeNothing,
	verification.OutcomeUnknown:     outcomeUnknown,
	verification.OutcomeLimited:     refusedLimited,
	verification.OutcomeVerified:    outcomeVerified,
	verification.OutcomeWrongNumber: outcomeWrongNumber,
	verification.OutcomeTooLate:     outcomeTooLate,
	verification.OutcomeWrongMethod: outcomeWrongMethod,
	verification.OutcomeNeedContact: outcomeNeedContact,
	// Only of texts with a number, which messages of Telegram do not have.
	verification.OutcomeNeedConfirmation: outcomeNothing,
	verification.OutcomeTextChanged:      outcomeNothing,
}

// inbound is a message that may count.
type inbound struct {
	// sender is the user, and the private chat with the user: they have the same id.
	sender int64
	sentAt time.Time
	// isContact says that it is the sender's own contact, with number. Else it is text.
	isContact bool
	number    phone.Number
	// promptedAt is when the message was sent that the contact answers; zero if it answers none.
	promptedAt time.Time
	text       string
}

// judge says whether a message may count at all, before anything is looked up: empty if so, else why not. in.sender is
// zero where nobody is to be answered.
//
// Contacts are where a naive bot is fooled: any client can send any number as a contact, but only Telegram's server says
// whose it is. So the contact must name its user, and that user must be the sender.
func judge(m *message, botUsername string) (in inbound, why outcome) {
	if why := judgeSender(m); why != "" {
		return inbound{}, why
	}
	in = inbound{sender: m.From.ID, sentAt: time.Unix(m.Date, 0)}
	switch {
	case bool(m.ForwardOrigin || m.ForwardDate):
		return in, refusedForwarded
	case m.Contact != nil:
		in.isContact = true
		if m.ReplyTo != nil {
			in.promptedAt = time.Unix(m.ReplyTo.Date, 0)
		}
		in.number, why = judgeContact(m.Contact, in.sender)
		return in, why
	case m.Text == "":
		return in, refusedEmpty
	default:
		in.text, why = payload(m.Text, botUsername)
		return in, why
	}
}

// judgeSender refuses what a person did not write in the private chat with the bot, just so.
func judgeSender(m *message) outcome {
	switch {
	case m.From == nil, m.From.ID <= 0, m.Chat.Type != "private", m.Chat.ID != m.From.ID:
		return refusedChat
	case m.From.IsBot:
		return refusedBot
	case bool(m.EditDate || m.ViaBot || m.SenderChat || m.SenderBusinessBot || m.BusinessConnectionID ||
		m.GuestQueryID || m.GuestBotCallerUser || m.GuestBotCallerChat):
		return refusedIndirect
	default:
		return ""
	}
}

func judgeContact(c *contact, sender int64) (phone.Number, outcome) {
	switch {
	case c.UserID == nil:
		return phone.Number{}, refusedNoUser
	case *c.UserID != sender:
		return phone.Number{}, refusedForeign
	}
	number, err := phone.ParseTelegram(c.PhoneNumber)
	if err != nil {
		if refusal, ok := errors.AsType[*phone.Error](err); ok && refusal.Reason == phone.ReasonAnonymous {
			return phone.Number{}, refusedAnonymous
		}
		return phone.Number{}, refusedNumber
	}
	return number, ""
}

// payload returns the part of a text that may hold a code: what follows /start, or a whole text that is no command.
func payload(text, botUsername string) (string, outcome) {
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
		return "", refusedCommand
	case utf8.RuneCountInString(rest) > maxPayload:
		return "", refusedPayload
	default:
		return rest, ""
	}
}
