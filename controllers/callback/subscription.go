package callback

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// subscription is whether an account's messages are delivered to our app at all. Its zero value is that they are, or that the
// platform has no subscriptions.
type subscription struct {
	// missing is set if they are not, with what to do about it by hand.
	missing bool
	remedy  string
	// mismatch is why the account that was found is not the number's, so that nothing may be subscribed to it; empty if it is.
	mismatch string
	// unchecked is why that is not known, and what to do; empty if it is known.
	unchecked string
	// unanswered is set if the platform did not answer, and so may answer later. wait is how long it asks to wait.
	unanswered bool
	wait       time.Duration
}

// decideSubscription returns the step to take and the verdict after it, if do and says take care of the callback.
func decideSubscription(p plan, s subscription, do step, says verdict) (step, verdict) {
	switch {
	case s.mismatch != "":
		return do, falseVerdict(verifyv1.ReasonAccountMismatch, s.mismatch)
	case s.unchecked != "":
		return do, trueVerdict(says.reason, says.message+"; the app's subscription is not checked: "+s.unchecked)
	case !s.missing:
		return do, says
	case p.byHand:
		return do, falseVerdict(verifyv1.ReasonNotSubscribed, notSubscribed+"set spec.whatsapp.registerWebhook to true, or run: "+s.remedy)
	case do == stepNone:
		return stepSubscribe, says
	default: // one step at a time
		return do, verdict{metav1.ConditionUnknown, verifyv1.ReasonRegistering, "the app is not subscribed yet; it is next"}
	}
}

const notSubscribed = "the Meta app is not subscribed to the WhatsApp Business account, so no message arrives; "

// subscriptionMemory is the last known subscription.
type subscriptionMemory struct {
	of    string
	found subscription
	known bool
	// failures counts the checks in a row that were not answered, and notBefore is when the next one is due.
	failures  int
	notBefore time.Time
}

// checkSubscription returns the subscription, as far as it is known, and when to check it again; zero if with the next check. A
// platform that does not answer leaves what was known before.
func (c *Controller) checkSubscription(ctx context.Context, s *settings.Settings, p plan) (subscription, time.Duration) {
	m := &c.subscription
	if m.of != p.subscriber {
		*m = subscriptionMemory{of: p.subscriber}
	}
	now := c.Clock.Now()
	if wait := m.notBefore.Sub(now); wait > 0 {
		return m.found, wait
	}
	found := c.messenger.readSubscription(ctx, s)
	if !found.unanswered {
		*m = subscriptionMemory{of: p.subscriber, found: found, known: true}
		return found, 0
	}
	if !m.known {
		m.found = found
	}
	m.failures++
	wait := max(retryAfter(m.failures), found.wait)
	m.notBefore = now.Add(wait)
	return m.found, wait
}
