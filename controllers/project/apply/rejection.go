package apply

import (
	"errors"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxMessage bounds what of an API server's words is repeated.
const maxMessage = 256

// untyped is how the server words its refusal of a configuration that breaks the rules of apply itself, such as a list that
// repeats a key. It answers 500 then, though trying again cannot help.
var untyped = regexp.MustCompile(`^failed to create typed patch object \(.*?\): (?:errors:\s*)?\.?([^\s:]+): `)

// rejected tells whether an error is a refusal of the child as it is, and says what the server says of it.
func rejected(ref Ref, err error) (Rejection, bool) {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || ending(err) || replaced(err) {
		return Rejection{}, false
	}
	answer := status.Status()
	rejection := Rejection{Ref: ref, Message: answer.Message}
	switch {
	case untyped.MatchString(answer.Message):
		found := untyped.FindStringSubmatch(answer.Message)
		rejection.Field, rejection.Message = found[1], strings.TrimPrefix(answer.Message, found[0])
	case apierrors.IsInvalid(err):
		if cause := firstCause(answer); cause != nil {
			rejection.Field, rejection.Message = cause.Field, cause.Message
		}
	case apierrors.IsForbidden(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err),
		apierrors.IsMethodNotSupported(err):
	default:
		return Rejection{}, false
	}
	rejection.Message = bounded(rejection.Message)
	return rejection, true
}

// ending tells whether an error says that the namespace is being deleted, and the project with it.
func ending(err error) bool { return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) }

// replaced tells whether an error says that the object we meant is gone, and another one has its name.
func replaced(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsInvalid(err) {
		return false
	}
	cause := firstCause(status.Status())
	return cause != nil && cause.Field == "metadata.uid"
}

func firstCause(status metav1.Status) *metav1.StatusCause {
	if status.Details == nil || len(status.Details.Causes) == 0 {
		return nil
	}
	return &status.Details.Causes[0]
}

func bounded(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "")
}
