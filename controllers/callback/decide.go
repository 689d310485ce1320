package callback

import (
	"crypto/sha256"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// verdict is what a condition says, but for its type and generation. Its zero value says nothing.
type verdict struct {
	status  metav1.ConditionStatus
	reason  string
	message string
}

func good(reason, message string) verdict { return verdict{metav1.ConditionTrue, reason, message} }
func bad(reason, message string) verdict  { return verdict{metav1.ConditionFalse, reason, message} }

// plan is what the settings want at one platform.
type plan struct {
	// absent says that the project does not use the messenger.
	absent bool
	// said is what there is to say without asking the platform; then it is not asked.
	said verdict

	// platform and field are how messages call the platform and the messenger's part of the spec.
	platform string
	field    string

	// account is whose callback it is: another one is another account.
	account string
	// secret is a digest of what the registration carries: another one has to be registered.
	secret [sha256.Size]byte
	// unseen says that the platform never tells the secret of a callback, so that only what was registered in this term
	// is known to have the right one.
	unseen bool
	// callback is to be registered; empty where none may be, because updates are fetched.
	callback string
	// home is the callback that the project's address makes, whether it is wanted or not.
	home     string
	takeOver bool
}

// seen is what a platform says.
type seen struct {
	// mismatch says why the account is not the one that the project means; empty if it is.
	mismatch string
	// callback is the registered one; empty if there is none.
	callback string
	// drifted says that it is registered with other terms than ours.
	drifted bool
	// failing says why deliveries to it fail just now; empty if they do not.
	failing string
}

// memory is what is known of earlier registrations.
type memory struct {
	// callbacks are those that we registered, by what status and this term remember.
	callbacks []string
	// secret is that of the registration that is known to stand; zero if none is.
	secret [sha256.Size]byte
}

// stale tells whether a callback of ours may have been registered with another secret than the present one.
func (m memory) stale(p plan) bool {
	if m.secret == ([sha256.Size]byte{}) {
		return p.unseen
	}
	return m.secret != p.secret
}

// step is what is to be done at a platform.
type step int

const (
	stepNone step = iota
	stepRegister
	stepRemove
)

// decide returns what to do, and what to say once it is done. Where updates are fetched and may be, it says nothing: how
// that goes, the poller knows.
func decide(p plan, s seen, m memory) (step, verdict) {
	registered := good(verifyv1.ReasonRegistered, p.platform+" delivers messages to this project")
	if s.failing != "" && s.callback == p.callback {
		registered = bad(verifyv1.ReasonCallbackUnreachable, s.failing)
	}
	ours := s.callback == p.callback || s.callback == p.home || slices.Contains(m.callbacks, s.callback)
	switch {
	case s.mismatch != "":
		return stepNone, bad(verifyv1.ReasonAccountMismatch, s.mismatch)
	case s.callback != "" && !ours && !p.takeOver:
		return stepNone, bad(verifyv1.ReasonCallbackTaken, "somebody else's callback is registered with "+p.platform+
			" for this account; remove it there, or set "+p.field+".takeOver to true")
	case p.callback == "" && s.callback == "":
		return stepNone, verdict{}
	case p.callback == "":
		return stepRemove, verdict{}
	case s.callback != p.callback, s.drifted, m.stale(p):
		return stepRegister, registered
	default:
		return stepNone, registered
	}
}

// trouble is a call that failed, in words for the project's owner.
type trouble struct {
	reason  string
	message string
	// temporary says that the same call may succeed later without anybody doing anything.
	temporary bool
}

func (t trouble) verdict() verdict { return bad(t.reason, t.message) }
