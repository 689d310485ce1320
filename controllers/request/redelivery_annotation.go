package request

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// maxRedelivery bounds a wish; it is what the schema lets status.observedRedeliver hold.
const maxRedelivery = 512

const malformedRedelivery = "the annotation " + verifyv1.RedeliverAnnotation +
	" must be REQUESTID/NONCE, with a NONCE of printable ASCII characters, at most 512 characters in all"

// nonceForm keeps out what databases, logs and terminals choke on. The API server reads an apply as YAML, which has no
// place for some control characters: noting such a wish would fail for ever.
var nonceForm = regexp.MustCompile(`^[ -~]+$`)

// parseRedelivery returns the id of the request whose event the annotation's value wishes for. An id has the form of an
// object's name in every store.
func parseRedelivery(wish string) (id string, ok bool) {
	id, nonce, _ := strings.Cut(wish, "/")
	ok = len(wish) <= maxRedelivery && nonceForm.MatchString(nonce) && len(validation.IsDNS1123Subdomain(id)) == 0
	return id, ok
}

// redeliveryMark returns what status.observedRedeliver holds once a wish was dealt with: the wish, or, where that is malformed and may
// have no place there, a few digits that tell it from others behind a word that no wish begins with.
func redeliveryMark(wish string) string {
	if _, ok := parseRedelivery(wish); ok {
		return wish
	}
	const digits = 8
	sum := sha256.Sum256([]byte(wish))
	return "malformed:" + hex.EncodeToString(sum[:])[:digits]
}
