package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Labels and annotations of this group. Their values never contain a phone
// number, a code or a secret.
const (
	// ProjectLabel is set on every VerificationRequest that serve creates or
	// completes, and on every child of a project. ProjectLabelValue returns its
	// value.
	ProjectLabel = "phoneproof.dev/project"

	// CodeIDLabel is set on a manual request, whose name is not the id that
	// belongs to its code. Its value is that id, so that an index finds the
	// request of an incoming message.
	CodeIDLabel = "phoneproof.dev/code-id"

	// RedeliverAnnotation on a VerificationProject has the form
	// REQUESTID/NONCE and sends the event of a final request once more. A new
	// nonce repeats that.
	RedeliverAnnotation = "phoneproof.dev/redeliver"
)

// hashSuffix matches names that end like a value of ProjectLabel with a hash.
var hashSuffix = regexp.MustCompile(`-[0-9a-f]{10}$`)

// ProjectLabelValue returns the value of ProjectLabel for a project: its name, or
// if that is too long for a label, the start of the name and a hash of it. Names
// that look like such a value get a hash as well. If two projects of a namespace
// had the same value, each Service would select the pods of both.
func ProjectLabelValue(name string) string {
	const digits = 10
	if len(name) <= validation.LabelValueMaxLength && !hashSuffix.MatchString(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	head := strings.TrimRight(name[:min(len(name), validation.LabelValueMaxLength-digits-1)], "-.")
	return head + "-" + hex.EncodeToString(sum[:])[:digits]
}
