package whatsapp

import (
	"crypto/sha256"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
)

// HMAC takes an empty key, which is known to all.
func TestSigned_byNoEmptySecret(t *testing.T) {
	g := NewWithT(t)
	body := []byte(`{"object":"whatsapp_business_account"}`)
	mac := func(secret string) [sha256.Size]byte { return [sha256.Size]byte(hmacOf([]byte(secret), body)) }
	g.Expect(isSigned(body, mac("secret"), [][]byte{[]byte("secret")})).To(BeTrue())
	g.Expect(isSigned(body, mac("secret"), [][]byte{{}, []byte("secret")})).To(BeTrue())
	for _, secrets := range [][][]byte{nil, {nil}, {{}}, {{}, []byte("secret")}} {
		g.Expect(isSigned(body, mac(""), secrets)).To(BeFalse(), "%q", secrets)
	}
}

// unread is a body that must not be looked at.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

// What announces too much is refused by its headers, so that who waits for "100 Continue" sends nothing.
func TestBodies_refuseAnAnnouncedExcessUnread(t *testing.T) {
	g := NewWithT(t)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, Path, unread{t})
	r.ContentLength = 3<<20 + 64<<10 + 1
	_, release, err := newBodies().readBody(httptest.NewRecorder(), r)
	defer release()
	g.Expect(err).To(MatchError(errBodyTooLarge))
}
