package messenger

import (
	"errors"
	"fmt"
	"slices"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// Outcome is the result of handling a message, or another part of what a platform posts. It is a label of metrics and a word
// in logs, so it is one of the constants below; each messenger has those that can occur there.
type Outcome string

// The outcomes of messages that reach the domain.
const (
	OutcomeVerified Outcome = "verified"
	// OutcomeProven is the message that proved a number which a client is still to confirm, or a copy of it; the sender was given
	// the session codes.
	OutcomeProven      Outcome = "proven"
	OutcomeWrongNumber Outcome = "wrong_number"
	OutcomeTooLate     Outcome = "too_late"
	OutcomeWrongMethod Outcome = "wrong_method"
	OutcomeNeedContact Outcome = "need_contact"
	// OutcomeNeedConfirmation is a code of the right number in another text than the prepared one; the sender was asked.
	OutcomeNeedConfirmation Outcome = "need_confirmation"
	// OutcomeTextChanged is the same for a request that was asked about before.
	OutcomeTextChanged Outcome = "text_changed"
	// OutcomeNeedEcho is a code from a sender without a number; the claimed number was asked.
	OutcomeNeedEcho Outcome = "need_echo"
	// OutcomeEchoLimited is the same for a number that was asked within the day.
	OutcomeEchoLimited Outcome = "echo_limited"
	// OutcomeDeclined is the answer "Not me", which ended the request.
	OutcomeDeclined    Outcome = "declined"
	OutcomeUnknownCode Outcome = "unknown_code"
	OutcomeNoCode      Outcome = "no_code"
	// OutcomeLimited is a message that was not looked at, because too many came.
	OutcomeLimited Outcome = "limited"
)

// The outcomes of messages that are refused before, and not delivered again.
const (
	OutcomeMalformed Outcome = "malformed"
	// OutcomeOtherType is a message of a type that can carry neither a code nor a contact.
	OutcomeOtherType Outcome = "other_type"
	// OutcomeForwarded is a text that the sender did not write for us.
	OutcomeForwarded Outcome = "forwarded"
	// OutcomeNotPrivate is a message in a group or a channel.
	OutcomeNotPrivate Outcome = "not_private"
	// OutcomeIndirect is a message that was edited, or that the sender did not write to the bot.
	OutcomeIndirect Outcome = "indirect"
	// OutcomeBot is a message of a bot, OutcomeEcho one of the business itself.
	OutcomeBot  Outcome = "bot"
	OutcomeEcho Outcome = "echo"
	// OutcomeNoSender is a message that names neither a number nor a user id, or contradicts itself about them.
	OutcomeNoSender Outcome = "no_sender"
	// OutcomeNoTime is a message without a time, which could be of any age.
	OutcomeNoTime Outcome = "no_time"
	// OutcomeOtherCommand is not /start, or a command for another bot.
	OutcomeOtherCommand Outcome = "other_command"
	// OutcomePayloadTooLong is more than a deep link can carry.
	OutcomePayloadTooLong Outcome = "payload_too_long"
	// OutcomeNumberHidden is a code from a sender without a number where the project accepts no shared contacts.
	OutcomeNumberHidden Outcome = "number_hidden"
	// OutcomeTapRefused is a tap on a button that was not shown to that sender, or not for that request.
	OutcomeTapRefused Outcome = "tap_refused"
)

// The outcomes of contacts that are refused.
const (
	// OutcomeContactRefused is a contact that is no answer to a prompt of ours, or not one number.
	OutcomeContactRefused     Outcome = "contact_refused"
	OutcomeContactWithoutUser Outcome = "contact_without_user"
	OutcomeContactOfAnother   Outcome = "contact_of_another"
	OutcomeBadNumber          Outcome = "bad_number"
	// OutcomeAnonymousNumber is a number with +888, which is not that of a telephone line.
	OutcomeAnonymousNumber Outcome = "anonymous_number"
)

// The outcomes of what is posted beside messages.
const (
	OutcomeOtherUpdate Outcome = "other_update"
	OutcomeOtherNumber Outcome = "other_number"
	OutcomeOtherObject Outcome = "other_object"
	OutcomeStatus      Outcome = "status"
)

// The outcomes of messages that could not be handled.
const (
	// OutcomeFailed and OutcomePromptFailed are delivered again.
	OutcomeFailed       Outcome = "failed"
	OutcomePromptFailed Outcome = "prompt_failed"
	// OutcomeNoPrompt is a message whose sender can never be asked for what it needs.
	OutcomeNoPrompt Outcome = "no_prompt"
	// OutcomeContentRefused is a message whose effect the store refuses to keep.
	OutcomeContentRefused Outcome = "content_refused"
	// OutcomePanicked is a message that met a bug of ours.
	OutcomePanicked Outcome = "panicked"
)

// domainOutcomes are indexed by the domain's own.
var domainOutcomes = [...]Outcome{
	verification.OutcomeNothing:          OutcomeNoCode,
	verification.OutcomeUnknown:          OutcomeUnknownCode,
	verification.OutcomeVerified:         OutcomeVerified,
	verification.OutcomeWrongNumber:      OutcomeWrongNumber,
	verification.OutcomeTooLate:          OutcomeTooLate,
	verification.OutcomeWrongMethod:      OutcomeWrongMethod,
	verification.OutcomeLimited:          OutcomeLimited,
	verification.OutcomeNeedContact:      OutcomeNeedContact,
	verification.OutcomeNeedConfirmation: OutcomeNeedConfirmation,
	verification.OutcomeTextChanged:      OutcomeTextChanged,
	verification.OutcomeNumberHidden:     OutcomeNumberHidden,
	verification.OutcomeNeedEcho:         OutcomeNeedEcho,
	verification.OutcomeDeclined:         OutcomeDeclined,
	verification.OutcomeProven:           OutcomeProven,
}

// OutcomeOf returns the outcome of a message from what the domain returned. An error means that the message has to be delivered
// again; a content that the store refuses would be refused again.
func OutcomeOf(receipt verification.Receipt, err error) (Outcome, error) {
	switch {
	case errors.Is(err, verification.ErrContent):
		return OutcomeContentRefused, nil
	case err != nil:
		return OutcomeFailed, fmt.Errorf("handle message: %w", err)
	default:
		return domainOutcomes[receipt.Outcome], nil
	}
}

// OutcomeOfRefusal is OutcomeOf for a message that never counts, with that outcome.
func OutcomeOfRefusal(refused Outcome, receipt verification.Receipt, err error) (Outcome, error) {
	came, err := OutcomeOf(receipt, err)
	if err != nil || came == OutcomeContentRefused || came == OutcomeLimited {
		return came, err
	}
	return refused, nil
}

// IsRepeated reports whether an earlier message, or an earlier copy of this one, had the outcome and was to be answered. A request that
// expired before it was declined has no such message.
func IsRepeated(came Outcome, receipt verification.Receipt) bool {
	switch {
	case receipt.Changed:
		return false
	case came == OutcomeDeclined:
		return slices.ContainsFunc(receipt.Request.Hints, func(h verification.Hint) bool { return h.Kind == verification.HintDeclined })
	default:
		return came == OutcomeVerified
	}
}
