package redelivery

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// maxWish bounds a wish; it is what the schema lets status.observedRedeliver hold.
const maxWish = 512

const malformed = "the annotation " + verifyv1.RedeliverAnnotation +
	" must be REQUESTID/NONCE, with a NONCE of printable ASCII characters, at most 512 characters in all"

// nonceForm keeps out what databases, logs and terminals choke on.
var nonceForm = regexp.MustCompile(`^[ -~]+$`)

// requestOf returns the id of the request whose event the annotation's value wishes for. An id has the form of an
// object's name in every store.
func requestOf(wish string) (id string, ok bool) {
	id, nonce, _ := strings.Cut(wish, "/")
	ok = len(wish) <= maxWish && nonceForm.MatchString(nonce) && len(validation.IsDNS1123Subdomain(id)) == 0
	return id, ok
}

// fitsStatus tells whether the status can hold the wish, be it well formed or not. The schema counts characters.
func fitsStatus(wish string) bool { return utf8.RuneCountInString(wish) <= maxWish }
