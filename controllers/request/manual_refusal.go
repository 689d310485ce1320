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

// minRecheck is the least time until a draft is tried again, whatever a store says: no answer makes a busy loop.
const minRecheck = time.Second

// manualRefusalError is why a draft cannot be completed, as its condition Accepted says it. Both texts are the same each time
// for the same cause, and hold neither a number nor anything else of the object.
type manualRefusalError struct {
	reason, message string
	// recheck is when to try again; zero where nothing but a change of the object or of the settings could help, and
	// either hands the draft in again.
	recheck time.Duration
}

// Error returns the words of the condition.
func (r *manualRefusalError) Error() string { return r.reason + ": " + r.message }

var errMalformed = &manualRefusalError{
	reason: verifyv1.ReasonMalformed, message: "the object's content makes no sense, so it is skipped; delete it",
}

// checkSettings tells whether a project with these settings can serve a draft; nil if it can.
func checkSettings(d kubernetes.ManualRequest, s *settings.Settings) error {
	if _, err := phone.Parse(d.Phone.E164()); err != nil {
		return &manualRefusalError{reason: verifyv1.ReasonPhoneNumberRefused, message: "spec.phoneNumber: " + err.Error()}
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

// asManualRefusal returns the refusal that an error stands for; nil where it is none. A malformed object does not exist for
// anybody else, so its error matches verification.ErrNotFound too: ask this first.
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
		if known.Limit == verification.LimitPerPrefix {
			message = "too many verifications were started for numbers that begin like this one; " +
				"it is completed when the project's rateLimit.perPrefix admits it"
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
