package request

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// maxRedelivery is the longest annotation; it is the limit of status.observedRedeliver in the schema.
const maxRedelivery = 512

const malformedRedelivery = "the annotation " + verifyv1.RedeliverAnnotation +
	" must be REQUESTID/NONCE, with a NONCE of printable ASCII characters, at most 512 characters in all"

// nonceForm excludes characters that databases, logs and terminals cannot handle. The API server reads an apply as YAML, which
// cannot hold some control characters: recording such an annotation would fail for ever.
var nonceForm = regexp.MustCompile(`^[ -~]+$`)

// parseRedelivery returns the id of the request that the annotation names. An id has the form of an object's name in every store.
func parseRedelivery(annotation string) (id string, ok bool) {
	id, nonce, _ := strings.Cut(annotation, "/")
	ok = len(annotation) <= maxRedelivery && nonceForm.MatchString(nonce) && len(validation.IsDNS1123Subdomain(id)) == 0
	return id, ok
}

// redeliveryMark returns the value of status.observedRedeliver after an annotation was handled: the annotation itself or, for a
// malformed one that the status might not hold, a short hash with a prefix that no valid annotation has.
func redeliveryMark(annotation string) string {
	if _, ok := parseRedelivery(annotation); ok {
		return annotation
	}
	const digits = 8
	sum := sha256.Sum256([]byte(annotation))
	return "malformed:" + hex.EncodeToString(sum[:])[:digits]
}
