package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// errExists says that an object with that name is there already.
var errExists = errors.New("the object exists")

// uncertain is an error after which a write may have happened or may still happen: the answer did not come, or came
// from something in between.
type uncertain struct{ error }

func (u uncertain) Unwrap() error { return u.error }

// classify turns the error of a call into one of the store's: it is the only place that knows what the API server's
// answers mean. What is not the request's own fault is Unavailable, so that a failing API server is never taken for a
// failing request.
func classify(doing string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) {
		return uncertain{fmt.Errorf("%s: %w", doing, err)}
	}
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return uncertain{unavailable(doing, err)}
	}
	refused := refusalOf(status.Status())
	switch {
	case apierrors.IsAlreadyExists(err):
		return errExists
	case apierrors.IsConflict(err):
		return verification.ErrConflict
	case absent(err):
		return verification.ErrNotFound
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return fmt.Errorf("%s: %w: %w", doing, verification.ErrContent, refused)
	case refused.code >= http.StatusInternalServerError:
		// A load balancer also answers 503 if its connection to the API server breaks after the write was sent.
		return uncertain{unavailable(doing, refused)}
	default:
		return unavailable(doing, refused)
	}
}

// refusal is what may be logged of the API server's answer. Its message quotes the object, and with it the number.
type refusal struct {
	code       int
	reason     metav1.StatusReason
	fields     []string
	retryAfter time.Duration
}

func refusalOf(status metav1.Status) refusal {
	r := refusal{code: int(status.Code), reason: status.Reason}
	if status.Details == nil {
		return r
	}
	r.retryAfter = time.Duration(status.Details.RetryAfterSeconds) * time.Second
	for _, cause := range status.Details.Causes {
		if cause.Field != "" {
			r.fields = append(r.fields, cause.Field)
		}
	}
	return r
}

func (r refusal) Error() string {
	if len(r.fields) == 0 {
		return fmt.Sprintf("the API server answered %d %s", r.code, r.reason)
	}
	return fmt.Sprintf("the API server answered %d %s for %s", r.code, r.reason, strings.Join(r.fields, ", "))
}

// absent tells an object that does not exist from a kind that does not exist: without the CRD, and through a proxy in
// the way, everything is 404.
func absent(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// unavailable reports a failing API server, with its own word on when to come back where it gives one.
func unavailable(doing string, err error) error {
	failure := verification.Unavailable(fmt.Errorf("%s: %w", doing, err))
	var known *verification.Error
	var refused refusal
	if errors.As(err, &refused) && refused.retryAfter > 0 && errors.As(failure, &known) {
		known.RetryAfter = refused.retryAfter
	}
	return failure
}

// outcome prefers the end of the caller's own context to what a call came to because of it.
func outcome(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return ctx.Err()
}
