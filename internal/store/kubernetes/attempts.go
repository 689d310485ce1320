package kubernetes

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// keptAttempts is how many attempts an object keeps, the last one in status.delivery included: with the usual reasons it then stays
// below 2 KiB.
const keptAttempts = 4

// fromAttempts names the kind of event only where it is not the present one of the request, which is rare.
func fromAttempts(r *verification.Request) []verifyv1.EarlierAttempt {
	var earlier []verifyv1.EarlierAttempt
	present := r.Event().Kind
	for _, a := range r.EarlierAttempts {
		kept := verifyv1.EarlierAttempt{
			At: metav1.NewMicroTime(a.At), Reason: a.Reason,
			Code: int32(a.StatusCode), //nolint:gosec // it was LastStatusCode once, which toObject checks
		}
		if a.Event != present {
			kept.Event = verifyv1.Event(a.Event)
		}
		earlier = append(earlier, kept)
	}
	return earlier
}

// readAttempts sets the earlier attempts of a request whose other state is read.
func readAttempts(earlier []verifyv1.EarlierAttempt, r *verification.Request) error {
	present := r.Event().Kind
	for _, a := range earlier {
		kept := verification.PastAttempt{At: fromMicroTime(&a.At), Event: present, StatusCode: int(a.Code), Reason: a.Reason}
		if a.Event != "" {
			kept.Event = verification.EventKind(a.Event)
		}
		if kept.At.IsZero() {
			return errors.New("status.earlierAttempts has one without a time")
		}
		r.EarlierAttempts = append(r.EarlierAttempts, kept)
	}
	return nil
}
