package simphone

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/texts"
)

// TestCodesIn reads the message in every language.
func TestCodesIn(t *testing.T) {
	g := NewWithT(t)
	for _, language := range texts.Languages() {
		for _, link := range []string{"", "https://verify.example/v/x/return?code=abc"} {
			m := texts.SessionMessage{Name: "Shop 123456", Digits: "000042", Link: link}
			codes, found := codesIn(texts.BuiltIn().In(language).FillSession(m))
			g.Expect(found).To(BeTrue(), language)
			g.Expect(codes).To(Equal(Codes{Digits: m.Digits, ReturnLink: link}), language)
		}
	}
	_, found := codesIn("Thank you.")
	g.Expect(found).To(BeFalse())
}

// TestChats_latest: the newest that an account sent, in whichever chat.
func TestChats_latest(t *testing.T) {
	g := NewWithT(t)
	_, err := (&chats{}).latest(codesIn)
	g.Expect(err).To(MatchError(errNoCodes))
	var all chats
	g.Expect(json.Unmarshal([]byte(`{"chats": [{"messages": [
		{"from": "business", "at": "2026-01-01T00:00:02Z", "text": "Code: 222222"},
		{"from": "user", "at": "2026-01-01T00:00:03Z", "text": "Code: 333333"}]},
		{"messages": [{"from": "business", "at": "2026-01-01T00:00:01Z", "text": "Code: 111111"},
		{"from": "business", "at": "2026-01-01T00:00:04Z", "text": "12345678 is your verification code."}]}]}`), &all)).To(Succeed())
	g.Expect(all.latest(codesIn)).To(HaveField("Digits", "222222"))
	g.Expect(all.latest(deliveredIn)).To(HaveField("Digits", "12345678"))
}
