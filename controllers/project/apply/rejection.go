package apply

import (
	"errors"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxMessage bounds how much of an API server's message is repeated.
const maxMessage = 256

// invalidConfiguration matches the server's message for a configuration that breaks the rules of apply itself, such as a list
// that repeats a key. Its status is 500, though a retry cannot help.
var invalidConfiguration = regexp.MustCompile(`^failed to create typed patch object \(.*?\): (?:errors:\s*)?\.?([^\s:]+): `)

// fullRange matches the server's message for a Service when its range of cluster IPs or node ports is used up. Its status is 500,
// though a retry helps only after other Services were deleted or the cluster has a larger range.
var fullRange = regexp.MustCompile(`failed to allocate .*: range is full$`)

// asRejection returns the rejection that an error stands for, and reports whether it is one.
func asRejection(ref Ref, err error) (Rejection, bool) {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || isEnding(err) || isReplaced(err) {
		return Rejection{}, false
	}
	answer := status.Status()
	rejection := Rejection{Ref: ref, Message: answer.Message}
	switch {
	case invalidConfiguration.MatchString(answer.Message):
		found := invalidConfiguration.FindStringSubmatch(answer.Message)
		rejection.Field, rejection.Message = found[1], strings.TrimPrefix(answer.Message, found[0])
	case apierrors.IsInvalid(err):
		if cause := firstCause(answer); cause != nil {
			rejection.Field, rejection.Message = cause.Field, cause.Message
		}
	case apierrors.IsForbidden(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err),
		apierrors.IsMethodNotSupported(err), fullRange.MatchString(answer.Message):
	default:
		return Rejection{}, false
	}
	rejection.Message = truncateMessage(rejection.Message)
	return rejection, true
}

// isEnding reports whether the namespace, and the project with it, is being deleted.
func isEnding(err error) bool { return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) }

// isReplaced reports whether the object that was meant is gone, and another one has its name.
func isReplaced(err error) bool {
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

func truncateMessage(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "")
}
