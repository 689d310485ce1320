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

// errExists means that an object with that name exists.
var errExists = errors.New("the object exists")

// unknownOutcomeError is an error after which a write may have happened or may still happen: the answer did not come, or came from
// a proxy.
type unknownOutcomeError struct{ error }

func (u unknownOutcomeError) Unwrap() error { return u.error }

// classifyError turns the error of a call into one of the store: it alone knows what the API server's answers mean. Everything
// that is not the fault of the request itself is Unavailable.
func classifyError(doing string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) {
		return unknownOutcomeError{fmt.Errorf("%s: %w", doing, err)}
	}
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return unknownOutcomeError{unavailableError(doing, err)}
	}
	refused := refusalOf(status.Status())
	switch {
	case apierrors.IsAlreadyExists(err):
		return errExists
	case apierrors.IsConflict(err):
		return verification.ErrConflict
	case isObjectNotFound(err):
		return verification.ErrNotFound
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return fmt.Errorf("%s: %w: %w", doing, verification.ErrContent, refused)
	case refused.code >= http.StatusInternalServerError:
		// A load balancer also answers 503 if its connection to the API server breaks after the write was sent.
		return unknownOutcomeError{unavailableError(doing, refused)}
	default:
		return unavailableError(doing, refused)
	}
}

// refusal holds what may be logged of the API server's answer, whose message quotes the object with its number.
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

// isObjectNotFound reports whether an object does not exist. Without the CRD, and from some proxies, everything is 404, which is
// another cause.
func isObjectNotFound(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// unavailableError returns the error for a failing API server, with the Retry-After that it sent.
func unavailableError(doing string, err error) error {
	failure := verification.Unavailable(fmt.Errorf("%s: %w", doing, err))
	var known *verification.Error
	var refused refusal
	if errors.As(err, &refused) && refused.retryAfter > 0 && errors.As(failure, &known) {
		known.RetryAfter = refused.retryAfter
	}
	return failure
}

// preferContextError returns the error of the caller's context, if that has ended, in place of an error that it caused.
func preferContextError(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return ctx.Err()
}
