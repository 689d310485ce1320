package kubernetes

import (
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// setConditions says what r is in conditions, as a part of the write that makes it so: there is no write for
// conditions alone.
func setConditions(o *verifyv1.VerificationRequest, r *verification.Request, now time.Time) {
	set := func(kind string, status metav1.ConditionStatus, reason string) {
		meta.SetStatusCondition(&o.Status.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: reason, // without observedGeneration: the spec never changes
			LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
		})
	}
	status, reason := verified(r)
	set(verifyv1.ConditionVerified, status, reason)
	if r.Delivery == (verification.Delivery{}) {
		meta.RemoveStatusCondition(&o.Status.Conditions, verifyv1.ConditionWebhookDelivered)
		return
	}
	status, reason = webhookDelivered(r.Delivery)
	set(verifyv1.ConditionWebhookDelivered, status, reason)
}

func verified(r *verification.Request) (metav1.ConditionStatus, string) {
	switch {
	case r.Phase == verification.Expired:
		return metav1.ConditionFalse, verifyv1.ReasonExpired
	case r.Phase != verification.Verified:
		return metav1.ConditionUnknown, verifyv1.ReasonPending
	case r.Assurance == verification.AssuranceSharedContact:
		return metav1.ConditionTrue, verifyv1.ReasonContactShared
	default:
		return metav1.ConditionTrue, verifyv1.ReasonNumberMatched
	}
}

func webhookDelivered(d verification.Delivery) (metav1.ConditionStatus, string) {
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
