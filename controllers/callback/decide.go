package callback

import (
	"crypto/sha256"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// verdict is the content of a condition, without its type and generation. Its zero value sets no condition.
type verdict struct {
	status  metav1.ConditionStatus
	reason  string
	message string
}

// registering is the verdict before the platform has answered.
var registering = verdict{metav1.ConditionUnknown, verifyv1.ReasonRegistering, "the messenger's platform is being asked"}

// toCondition returns the condition that a verdict on settings gives their project.
func (v verdict) toCondition(conditionType string, s *settings.Settings) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: v.status, Reason: v.reason, Message: v.message, ObservedGeneration: s.Generation}
}

func trueVerdict(reason, message string) verdict {
	return verdict{metav1.ConditionTrue, reason, message}
}
func falseVerdict(reason, message string) verdict {
	return verdict{metav1.ConditionFalse, reason, message}
}

// plan is what the settings want at one platform.
type plan struct {
	// absent is set if the project does not use the messenger.
	absent bool
	// verdict is set if the condition is known without calling the platform; then it is not called.
	verdict verdict

	// platform and field name the platform and the messenger's part of the spec in messages.
	platform string
	field    string

	// account identifies the owner of the callback.
	account string
	// secret is a digest of what the registration carries: if it differs, the callback is registered again.
	secret [sha256.Size]byte
	// secretHidden is set if the platform never returns the secret of a callback, so that only a registration of this term is
	// known to have the right one.
	secretHidden bool
	// callback is the one to register; empty if none may be, because updates are polled.
	callback string
	// byHand is set if the callback is the user's to register. Nothing is changed at the platform then.
	byHand bool
	// subscriber identifies whose subscription is checked.
	subscriber string
	// ownCallback is the callback for the project's address, whether it is wanted or not.
	ownCallback string
	takeOver    bool
}

// platformState is the state of an account at its platform.
type platformState struct {
	// mismatch is why the account is not the one that the project names; empty if it is.
	mismatch string
	// callback is the registered one; empty if there is none.
	callback string
	// drifted is set if it is registered with options that differ from ours.
	drifted bool
	// failing is why deliveries to it fail now; empty if they do not.
	failing string
}

// memory is what is known of earlier registrations.
type memory struct {
	// callbacks are those that were registered by us, as stored in the status and in this term.
	callbacks []string
	// secret is the digest of the registration that exists now; zero if unknown.
	secret [sha256.Size]byte
}

// hasStaleSecret reports whether a callback of ours may be registered with another secret than the present one.
func (m memory) hasStaleSecret(p plan) bool {
	if m.secret == ([sha256.Size]byte{}) {
		return p.secretHidden
	}
	return m.secret != p.secret
}

// step is a change to make at a platform.
type step int

const (
	stepNone step = iota
	stepRegister
	stepRemove
	stepSubscribe
)

// decideStep returns the step to take, and the verdict after it. The verdict is empty if updates may be polled, since the poller
// provides it then.
func decideStep(p plan, s platformState, m memory) (step, verdict) {
	registered := trueVerdict(verifyv1.ReasonRegistered, p.platform+" delivers messages to this project")
	if s.failing != "" && s.callback == p.callback {
		registered = falseVerdict(verifyv1.ReasonCallbackUnreachable, s.failing)
	}
	if p.byHand {
		return stepNone, registeredByHand
	}
	ours := s.callback == p.callback || s.callback == p.ownCallback || slices.Contains(m.callbacks, s.callback)
	switch {
	case s.mismatch != "":
		return stepNone, falseVerdict(verifyv1.ReasonAccountMismatch, s.mismatch)
	case s.callback != "" && !ours && !p.takeOver:
		return stepNone, falseVerdict(verifyv1.ReasonCallbackTaken, "another callback is registered with "+p.platform+
			" for this account; remove it there, or set "+p.field+".takeOver to true")
	case p.callback == "" && s.callback == "":
		return stepNone, verdict{}
	case p.callback == "":
		return stepRemove, verdict{}
	case s.callback != p.callback, s.drifted, m.hasStaleSecret(p):
		return stepRegister, registered
	default:
		return stepNone, registered
	}
}

var registeredByHand = trueVerdict(verifyv1.ReasonRegistrationByHand,
	"the callback is registered with Meta by hand, as spec.whatsapp.registerWebhook says, and not checked")

// callFailure is a failed call, described for the project's owner.
type callFailure struct {
	reason  string
	message string
	// temporary is set if the same call may succeed later without any change.
	temporary bool
}

func (t callFailure) toVerdict() verdict { return falseVerdict(t.reason, t.message) }
