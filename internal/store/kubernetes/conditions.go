package kubernetes

import (
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// setConditions sets the conditions that describe r, as a part of the write of r: there is no write for conditions alone.
func setConditions(o *verifyv1.VerificationRequest, r *verification.Request, now time.Time) {
	set := func(kind string, status metav1.ConditionStatus, reason string) {
		meta.SetStatusCondition(&o.Status.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: reason, // without observedGeneration: the spec never changes
			LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
		})
	}
	o.Status.ObservedGeneration = o.Generation
	if r.IsDelivery() {
		return // it is no verification
	}
	setProgressOf(&o.Status.Conditions, r, now)
	status, reason := verifiedCondition(r)
	set(verifyv1.ConditionVerified, status, reason)
	if r.Delivery == (verification.Delivery{}) {
		meta.RemoveStatusCondition(&o.Status.Conditions, verifyv1.ConditionWebhookDelivered)
		return
	}
	status, reason = webhookDeliveredCondition(r.Delivery)
	set(verifyv1.ConditionWebhookDelivered, status, reason)
}

// setProgressOf sets the conditions of kstatus: a pending request is in progress and an expired one failed. A verified one is
// neither, whether or not the receiver accepted the event.
func setProgressOf(conditions *[]metav1.Condition, r *verification.Request, now time.Time) {
	switch r.Phase {
	case verification.Verified:
		setProgress(conditions, metav1.Condition{}, now)
	case verification.Expired:
		if r.Event().Kind == verification.EventDeclined {
			setProgress(conditions, metav1.Condition{
				Type: verifyv1.ConditionStalled, Reason: verifyv1.ReasonDeclined, Message: "the owner of the number declined",
			}, now)
			return
		}
		setProgress(conditions, metav1.Condition{
			Type: verifyv1.ConditionStalled, Reason: verifyv1.ReasonExpired, Message: endMessage(r),
		}, now)
	default:
		c := metav1.Condition{Type: verifyv1.ConditionReconciling, Reason: verifyv1.ReasonPending, Message: "awaiting the user's message"}
		if r.IsProven() {
			c.Reason, c.Message = verifyv1.ReasonAwaitingConfirmation, "awaiting the client's confirmation"
		}
		setProgress(conditions, c, now)
	}
}

// endMessage returns why a request expired.
func endMessage(r *verification.Request) string {
	switch hint := r.Event().Hint; {
	case hint == verification.HintWrongCode:
		return "too many wrong session codes were entered"
	case hint == verification.HintCanceled:
		return "the user gave up on the page, or the client canceled it"
	case r.IsProven():
		return "the time ran out before the client confirmed the request"
	default:
		return "the time ran out before the user's message came"
	}
}

// setProgressOfRefused sets the conditions of kstatus for a refused request: in progress if the refusal may end by itself, else
// failed.
func setProgressOfRefused(conditions *[]metav1.Condition, reason, message string, now time.Time) {
	c := metav1.Condition{Type: verifyv1.ConditionReconciling, Reason: reason, Message: message}
	switch reason {
	case verifyv1.ReasonMethodNotConfigured, verifyv1.ReasonPhoneNumberRefused, verifyv1.ReasonMalformed:
		c.Type = verifyv1.ConditionStalled
	}
	setProgress(conditions, c, now)
}

// setProgress sets the given condition, Reconciling or Stalled, and removes the other; both if it has no type.
func setProgress(conditions *[]metav1.Condition, c metav1.Condition, now time.Time) {
	for _, kind := range []string{verifyv1.ConditionReconciling, verifyv1.ConditionStalled} {
		if kind != c.Type {
			meta.RemoveStatusCondition(conditions, kind)
		}
	}
	if c.Type != "" {
		c.Status, c.LastTransitionTime = metav1.ConditionTrue, metav1.NewTime(now.Truncate(time.Second))
		meta.SetStatusCondition(conditions, c)
	}
}

func verifiedCondition(r *verification.Request) (metav1.ConditionStatus, string) {
	switch {
	case r.Event().Kind == verification.EventDeclined:
		return metav1.ConditionFalse, verifyv1.ReasonDeclined
	case r.Phase == verification.Expired:
		return metav1.ConditionFalse, verifyv1.ReasonExpired
	case r.Phase != verification.Verified && r.IsProven():
		return metav1.ConditionUnknown, verifyv1.ReasonAwaitingConfirmation
	case r.Phase != verification.Verified:
		return metav1.ConditionUnknown, verifyv1.ReasonPending
	case r.Assurance == verification.AssuranceSharedContact:
		return metav1.ConditionTrue, verifyv1.ReasonContactShared
	case r.Assurance == verification.AssuranceEcho:
		return metav1.ConditionTrue, verifyv1.ReasonEchoAnswered
	default:
		return metav1.ConditionTrue, verifyv1.ReasonNumberMatched
	}
}

func webhookDeliveredCondition(d verification.Delivery) (metav1.ConditionStatus, string) {
	switch {
	case d.Wanted():
		return metav1.ConditionFalse, verifyv1.ReasonDue
	case !d.DeliveredAt.IsZero():
		return metav1.ConditionTrue, verifyv1.ReasonDelivered
	case d.LastStatusCode == http.StatusGone:
		return metav1.ConditionFalse, verifyv1.ReasonGone
	default:
		return metav1.ConditionFalse, verifyv1.ReasonExhausted
	}
}
