package whatsapp

import "github.com/phoneproof/phoneproof/internal/verification"

// outcome is what became of a message, or of another part of a webhook. It is a label of a metric, so it is one of these.
type outcome string

// What messages come to in the domain.
const (
	outcomeVerified    outcome = "verified"
	outcomeWrongNumber outcome = "wrong_number"
	outcomeTooLate     outcome = "too_late"
	outcomeWrongMethod outcome = "wrong_method"
	outcomeNeedContact outcome = "need_contact"
	// outcomeNeedConfirmation is a code of the right number in another text than the prepared one; the sender was asked.
	outcomeNeedConfirmation outcome = "need_confirmation"
	// outcomeTextChanged is the same for a request that was asked about before.
	outcomeTextChanged outcome = "text_changed"
	outcomeUnknownCode outcome = "unknown_code"
	outcomeNoCode      outcome = "no_code"
	// outcomeNumberHidden is a code from a sender without a number where the project takes no shared contacts.
	outcomeNumberHidden outcome = "number_hidden"
)

// What is refused before the domain sees it.
const (
	// outcomeForwarded messages are refused because whoever forwards a text did not write it for us.
	outcomeForwarded outcome = "forwarded"
	outcomeGroup     outcome = "group"
	outcomeEcho      outcome = "echo"
	// outcomeNoSender is a message that names neither a number nor a user id, or contradicts itself about them.
	outcomeNoSender outcome = "no_sender"
	// outcomeNoTime is a message without a time, which could be of any age.
	outcomeNoTime outcome = "no_time"
	// outcomeLimited is a message of a sender who sent too many.
	outcomeLimited outcome = "limited"
	// outcomeContactRefused is a contact that is no answer to a prompt of ours, or not one number.
	outcomeContactRefused outcome = "contact_refused"
	// outcomeTapRefused is a tap on a button that was not shown to that sender, or not for that request.
	outcomeTapRefused outcome = "tap_refused"
	// outcomeNoPrompt is a message whose sender cannot be asked for what it needs: Meta will never deliver that.
	outcomeNoPrompt outcome = "no_prompt"
	// outcomeOtherType is a message of a type that can carry no code: reactions, media, system, unsupported, edits.
	outcomeOtherType outcome = "other_type"
	outcomeMalformed outcome = "malformed"
	// outcomePanicked is a message that met a bug of ours.
	outcomePanicked outcome = "panicked"
	// outcomeContentRefused is a message whose effect the store refuses to keep.
	outcomeContentRefused outcome = "content_refused"
)

// What a webhook carries beside messages for us.
const (
	outcomeOtherNumber outcome = "other_number"
	outcomeOtherField  outcome = "other_field"
	outcomeOtherObject outcome = "other_object"
	outcomeStatus      outcome = "status"
)

// outcomeFailed is a message that is to be delivered again.
const outcomeFailed outcome = "failed"

var outcomes = [...]outcome{
	outcomeVerified, outcomeWrongNumber, outcomeTooLate, outcomeWrongMethod, outcomeNeedContact,
	outcomeNeedConfirmation, outcomeTextChanged, outcomeTapRefused, outcomeNoPrompt,
	outcomeUnknownCode, outcomeNoCode, outcomeNumberHidden, outcomeForwarded, outcomeGroup, outcomeEcho,
	outcomeNoSender, outcomeNoTime, outcomeLimited, outcomeContactRefused, outcomeOtherType, outcomeMalformed, outcomePanicked,
	outcomeContentRefused, outcomeOtherNumber, outcomeOtherField, outcomeOtherObject, outcomeStatus,
	outcomeFailed,
}

// outcomeOf names an outcome of the domain.
func outcomeOf(o verification.Outcome) outcome {
	switch o {
	case verification.OutcomeVerified:
		return outcomeVerified
	case verification.OutcomeWrongNumber:
		return outcomeWrongNumber
	case verification.OutcomeTooLate:
		return outcomeTooLate
	case verification.OutcomeWrongMethod:
		return outcomeWrongMethod
	case verification.OutcomeNeedContact:
		return outcomeNeedContact
	case verification.OutcomeNeedConfirmation:
		return outcomeNeedConfirmation
	case verification.OutcomeTextChanged:
		return outcomeTextChanged
	case verification.OutcomeUnknown:
		return outcomeUnknownCode
	case verification.OutcomeLimited:
		return outcomeLimited
	case verification.OutcomeNothing:
		return outcomeNoCode
	default:
		return outcomeNoCode
	}
}
