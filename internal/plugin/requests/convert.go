package requests

import (
	"errors"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/store/kubernetes"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// Problems of objects that no server works on.
const (
	problemAwaited   = "no server has taken it up yet"
	problemMalformed = "Malformed: "
)

// convertObject returns an object in the form of the API, as the API would answer it at now. It never holds a code.
func convertObject(o *verifyv1.VerificationRequest, now time.Time) Request {
	stored, err := kubernetes.ParseObject(o)
	if err != nil {
		return convertUnserved(o, err)
	}
	r := Request{
		RequestID: o.Name, Status: string(stored.PhaseAt(now)), PhoneNumber: stored.Phone.E164(), Method: string(stored.UsedMethod()),
		CreatedAt: stored.CreatedAt.UTC(), ExpiresAt: stored.EndsAt().UTC(), Hint: string(stored.HintAt(now)),
		Reference: o.Spec.Reference, Locale: o.Spec.Locale, Metadata: verifyv1.Strings(o.Spec.Metadata), APIKey: stored.KeyName,
		Via: string(stored.Via), CodeDelivery: string(stored.CodeDeliveryAt(now)), CodeReason: stored.Code.Reason,
		Test: stored.Test, Delivery: convertDelivery(o.Status.Delivery), Problem: findRefusal(o),
	}
	if stored.IsDelivery() {
		r.Kind = kindDelivery
	}
	if r.Status == statusVerified {
		r.VerifiedAt, r.ActualPhoneNumber = stored.VerifiedAt.UTC(), stored.Actual.E164()
		if assurance := stored.ShownAssurance(); assurance != verification.AssuranceUsual {
			r.Assurance = string(assurance)
		}
	}
	for _, h := range stored.Hints {
		r.Hints = append(r.Hints, Hint{Kind: string(h.Kind), At: h.At.UTC()})
	}
	for _, a := range stored.PastAttempts() {
		r.Attempts = append(r.Attempts, Attempt{At: a.At.UTC(), Event: string(a.Event), StatusCode: a.StatusCode, Reason: a.Reason})
	}
	return r
}

// convertUnserved returns a manual request that was not completed, or an object that servers leave alone.
func convertUnserved(o *verifyv1.VerificationRequest, reason error) Request {
	r := Request{
		RequestID: o.Name, Status: statusPending, PhoneNumber: o.Spec.PhoneNumber, Method: strings.ToUpper(string(o.Spec.Method)),
		CreatedAt: o.CreationTimestamp.UTC(), Reference: o.Spec.Reference, Locale: o.Spec.Locale, Metadata: verifyv1.Strings(o.Spec.Metadata),
	}
	r.Problem = findRefusal(o)
	switch {
	case !errors.Is(reason, kubernetes.ErrIncomplete):
		r.Problem = problemMalformed + reason.Error()
	case r.Problem == "":
		r.Problem = problemAwaited
	}
	return r
}

// findRefusal returns why a manual request was refused; empty if it was not.
func findRefusal(o *verifyv1.VerificationRequest) string {
	accepted := meta.FindStatusCondition(o.Status.Conditions, verifyv1.ConditionAccepted)
	if accepted == nil || accepted.Status != metav1.ConditionFalse {
		return ""
	}
	return accepted.Reason + ": " + accepted.Message
}

func convertDelivery(d *verifyv1.Delivery) *Delivery {
	if d == nil {
		return nil
	}
	delivery := &Delivery{
		State: deliveryWaiting, Attempts: int(d.Attempts), NextAttemptAt: timeOf(d.NextAttemptAt), DeliveredAt: timeOf(d.DeliveredAt),
	}
	switch {
	case d.DeliveredAt != nil:
		delivery.State = deliveryDelivered
	case d.ExhaustedAt != nil:
		delivery.State = deliveryExhausted
	}
	return delivery
}

func timeOf(t *metav1.MicroTime) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// selects reports whether a query selects a request, which is no delivery.
func selects(q *Query, r *Request) bool {
	return r.Kind != kindDelivery && (q.Status == "" || q.Status == r.Status) &&
		(q.Reference == "" || q.Reference == r.Reference) && !r.CreatedAt.Before(q.Since)
}
