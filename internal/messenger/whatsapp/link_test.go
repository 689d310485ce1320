package whatsapp

import (
	"crypto/sha256"
	"net/url"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func TestLink(t *testing.T) {
	const (
		before = "https://wa.me/15550100123?text=I%20confirm%20my%20phone%20number%20to%20"
		after  = ".%20I%20asked%20for%20this%20myself%20and%20send%20it%20to%20nobody%20else.%20Code%3A%20ZJSE-JNS0-1TTQ-3W8Z"
	)
	acme := verification.NewCodeSpace("shop/acme")
	code := acme.CodeFor(sha256.Sum256([]byte("key")), "order-1")
	for name, inLink := range map[string]string{
		"Ada":                      "Ada",
		"Ada & Co":                 "Ada%20%26%20Co",
		"A+B":                      "A%2BB",
		"A%20B":                    "A%2520B",
		`Ada's "Books"`:            "Ada%27s%20%22Books%22",
		"#1 Books? a=b; /c":        "%231%20Books%3F%20a%3Db%3B%20%2Fc",
		"https://shop.example.com": "https%3A%2F%2Fshop.example.com",
		"Ada 👩\u200d💻":             "Ada%20%F0%9F%91%A9%E2%80%8D%F0%9F%92%BB",
		"ספרים":                    "%D7%A1%D7%A4%D7%A8%D7%99%D7%9D",
		"كتب آدا":                  "%D9%83%D8%AA%D8%A8%20%D8%A2%D8%AF%D8%A7",
		"書店":                       "%E6%9B%B8%E5%BA%97",
		"0123-4567-89AB-CDEF":      "0123-4567-89AB-CDEF", // the form of a code, of no project
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			text := expectedText(name, code)
			link := Link("+15550100123", text)
			g.Expect(link).To(Equal(before + inLink + after))
			g.Expect(link).NotTo(ContainSubstring("+"), "neither before the number nor for a space")

			u, err := url.Parse(link)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(u.Path).To(Equal("/15550100123"))
			query, err := url.ParseQuery(u.RawQuery)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(query).To(Equal(url.Values{"text": {text}}), "the draft is the text, to the letter, and nothing else is in the link")
			found, _ := acme.Extract(query.Get("text"))
			g.Expect(found).To(Equal(code))
		})
	}
}

// A user who gets the link sees the text alone: it must say what sending it means.
func TestExpectedText(t *testing.T) {
	acme := verification.NewCodeSpace("shop/acme")
	code := acme.CodeFor(sha256.Sum256([]byte("key")), "order-1")
	NewWithT(t).Expect(expectedText("Ada's Bookshop", code)).To(Equal(
		"I confirm my phone number to Ada's Bookshop. I asked for this myself and send it to nobody else. Code: ZJSE-JNS0-1TTQ-3W8Z"))
}
