package telegram

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// FuzzRead tries updates: whatever arrives is judged without a panic, and nothing counts but a message of a person in a
// private chat, with the contact that Telegram says is their own.
func FuzzRead(f *testing.F) {
	files, err := os.ReadDir("testdata/in")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile("testdata/in/" + file.Name())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		g := NewWithT(t)
		in, why := readInbound(raw, "example_shop_bot")
		id, m, err := readUpdate(raw)
		g.Expect(id).To(And(BeNumerically(">=", 0), BeNumerically("<=", maxUpdateID)))
		if why != "" {
			return
		}
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.From.ID).To(Equal(in.sender))
		g.Expect(m.Chat.ID).To(Equal(in.sender))
		g.Expect(m.Chat.Type).To(Equal("private"))
		g.Expect(m.From.IsBot || bool(m.ForwardOrigin || m.ViaBot || m.SenderChat || m.BusinessConnectionID || m.EditDate)).To(BeFalse())
		g.Expect(in.isContact).To(Equal(m.Contact != nil))
		g.Expect(in.number.IsZero()).To(Equal(!in.isContact))
		if in.isContact {
			g.Expect(*m.Contact.UserID).To(Equal(in.sender))
			g.Expect(m.Contact.PhoneNumber).To(MatchRegexp(`^\+?[1-9][0-9]{6,14}$`))
			g.Expect(strings.TrimPrefix(m.Contact.PhoneNumber, "+")).NotTo(HavePrefix("888"))
			g.Expect(in.number.E164()).To(Equal("+" + strings.TrimPrefix(m.Contact.PhoneNumber, "+")))
		}
	})
}

// FuzzAuthentic tries secret headers: only the right one, alone, is let in.
func FuzzAuthentic(f *testing.F) {
	s := liveSettings()
	right := WebhookSecret([]byte(botToken), projectName)
	f.Add(right, "", false)
	f.Add(right, right, true)
	f.Add("", "", false)
	f.Add(strings.Repeat("a", 257), right, true)
	f.Fuzz(func(t *testing.T, first, second string, two bool) {
		values := []string{first}
		if two {
			values = append(values, second)
		}
		h := http.Header{secretHeader: values}
		if got, want := isAuthentic(h, s, time.Now()), !two && first == right; got != want {
			t.Errorf("authentic = %v, want %v", got, want)
		}
	})
}
