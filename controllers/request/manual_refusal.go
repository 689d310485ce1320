package request

import (
	"errors"
	"time"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/store/kubernetes"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// minRecheck is the least time until a manual request is retried, whatever the store returns, so that no answer causes a busy
// loop.
const minRecheck = time.Second

// manualRefusalError is why a manual request cannot be completed, as in its condition Accepted. Both texts are constant for the same
// cause, and contain neither a number nor anything else of the object.
type manualRefusalError struct {
	reason, message string
	// recheck is when to retry; zero if only a change of the object or of the settings could help, since either requeues the
	// request.
	recheck time.Duration
}

// Error returns the reason and message of the condition.
func (r *manualRefusalError) Error() string { return r.reason + ": " + r.message }

var errMalformed = &manualRefusalError{
	reason: verifyv1.ReasonMalformed, message: "the object's content makes no sense, so it is skipped; delete it",
}

// checkSettings returns why a project with these settings cannot serve the manual request; nil if it can.
func checkSettings(d kubernetes.ManualRequest, s *settings.Settings) error {
	if _, err := phone.Parse(d.Phone.E164()); err != nil {
		return &manualRefusalError{reason: verifyv1.ReasonPhoneNumberRefused, message: "spec.phoneNumber: " + err.Error()}
	}
	if s.IsOwnNumber(d.Phone) {
		return &manualRefusalError{
			reason:  verifyv1.ReasonPhoneNumberRefused,
			message: "spec.phoneNumber: the number that the project itself receives messages at, spec.whatsapp.phoneNumber; give the number of a user",
		}
	}
	if s.Suspended {
		return &manualRefusalError{
			reason: verifyv1.ReasonSuspended, message: "the project is suspended; set its spec.suspend to false",
		}
	}
	switch s.Method(d.Method) {
	case settings.MethodNotConfigured:
		return &manualRefusalError{
			reason:  verifyv1.ReasonMethodNotConfigured,
			message: "the project has no account for spec.method; use the other one, or add the account",
		}
	case settings.MethodNotReady:
		return &manualRefusalError{
			reason:  verifyv1.ReasonSecretsNotReady,
			message: "the secrets of the account for spec.method cannot be read yet; see the project's conditions",
		}
	default:
		return nil
	}
}

// asManualRefusal returns the refusal that an error stands for; nil if it is none. Call it before testing for
// verification.ErrNotFound, which the error of a malformed object matches too.
func asManualRefusal(err error) *manualRefusalError {
	if refused, ok := errors.AsType[*manualRefusalError](err); ok {
		return refused
	}
	if errors.Is(err, verification.ErrContent) {
		return errMalformed
	}
	known, ok := errors.AsType[*verification.Error](err)
	if !ok {
		return nil
	}
	recheck := max(minRecheck, known.RetryAfter)
	switch known.Code {
	case verification.CodeRateLimited:
		message := "too many verifications were started for this number; it is completed when the project's rateLimit.perPhoneNumber admits it"
		switch known.Limit {
		case verification.LimitPerPrefix:
			message = "too many verifications were started for numbers that begin like this one; " +
				"it is completed when the project's rateLimit.perPrefix admits it"
		case verification.LimitDeclined:
			message = "the owner of this number declined a verification; it is completed when the project's assurance.declineCooldown is over"
		}
		return &manualRefusalError{reason: verifyv1.ReasonRateLimited, message: message, recheck: recheck}
	case verification.CodeTooManyStored:
		return &manualRefusalError{
			reason:  verifyv1.ReasonTooManyStored,
			message: "the project holds as many unfinished requests as its request.maxStored; it is completed when there is room",
			recheck: recheck,
		}
	default:
		return nil
	}
}
