package telegram

import (
	"crypto/rand"
	"crypto/sha256"
	"net/url"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func TestLink(t *testing.T) {
	g := NewWithT(t)
	acme := verification.NewCodeSpace("shop/acme")
	code := acme.CodeFor(sha256.Sum256([]byte("key")), "order-1")
	g.Expect(Link("ada_books_bot", code)).To(Equal("https://t.me/ada_books_bot?start=ZJSE-JNS0-1TTQ-3W8Z"))
	g.Expect(ExpectedText(code)).To(Equal("/start ZJSE-JNS0-1TTQ-3W8Z"))
}

// A client sends "/start ", and the payload as it stands: what Telegram does not allow in one, it drops, link and all.
func TestLink_leadsToTheExpectedText(t *testing.T) {
	g := NewWithT(t)
	acme := verification.NewCodeSpace("shop/acme")
	for range 100 {
		code, err := acme.NewCode(rand.Reader)
		g.Expect(err).NotTo(HaveOccurred())
		u, err := url.Parse(Link("Ada_Books_Bot", code))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(u.Host + u.Path).To(Equal("t.me/Ada_Books_Bot"))
		query, err := url.ParseQuery(u.RawQuery)
		g.Expect(err).NotTo(HaveOccurred())
		payload := query.Get("start")
		g.Expect(query).To(Equal(url.Values{"start": {payload}}))
		g.Expect(payload).To(MatchRegexp(`^[A-Za-z0-9_-]{1,64}$`))
		g.Expect("/start " + payload).To(Equal(ExpectedText(code)))
		found, _ := acme.Extract("/start " + payload)
		g.Expect(found).To(Equal(code))
	}
}
