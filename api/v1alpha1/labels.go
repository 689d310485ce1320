package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Labels and annotations of this group. No value of any of them ever holds a
// phone number, a code or a secret.
const (
	// ProjectLabel is set on every VerificationRequest that serve makes or
	// completes, and on every child of a project. Its value is that of
	// ProjectLabelValue.
	ProjectLabel = "phoneproof.dev/project"

	// CodeIDLabel is set on a VerificationRequest that was made with kubectl,
	// whose name therefore is not the id that the code leads to. Its value is
	// that id, so that an incoming message finds the request by an index.
	CodeIDLabel = "phoneproof.dev/code-id"

	// RedeliverAnnotation on a VerificationProject, in the form
	// REQUESTID/NONCE, sends the event of a verified request once more.
	// Another nonce asks again.
	RedeliverAnnotation = "phoneproof.dev/redeliver"
)

// hashed matches names that end as a value of ProjectLabel with a hash does.
var hashSuffix = regexp.MustCompile(`-[0-9a-f]{10}$`)

// ProjectLabelValue returns the value of ProjectLabel for the project with that
// name: the name, and where that is longer than a label may be, the start of it
// with a hash of the whole. A name that could be taken for one with a hash gets
// a hash too, so that no two projects of a namespace share a value: each
// Service would lead to the pods of both.
func ProjectLabelValue(name string) string {
	const digits = 10
	if len(name) <= validation.LabelValueMaxLength && !hashSuffix.MatchString(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	head := strings.TrimRight(name[:min(len(name), validation.LabelValueMaxLength-digits-1)], "-.")
	return head + "-" + hex.EncodeToString(sum[:])[:digits]
}
