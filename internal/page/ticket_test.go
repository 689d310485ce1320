package page

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

var ticketTime = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// shopSettings returns a project with a page and both messengers.
func shopSettings() *settings.Settings {
	return &settings.Settings{
		Project: "books/shop", DisplayName: "Ada's Books", BaseURL: "https://verify.example/phone", PathPrefix: "/phone",
		WhatsApp: &settings.WhatsApp{AppSecret: settings.NewSecret([]byte("an app secret")), PhoneNumber: "+15550100100"},
		Telegram: &settings.Telegram{BotToken: settings.NewSecret([]byte("123:a bot token")), BotUsername: "ada_bot"},
		Page:     &settings.Page{ReturnURLs: []string{"https://shop.example"}},
	}
}

func codeOf(s *settings.Settings, key string) verification.Code {
	return verification.NewCodeSpace(s.Project).CodeFor([32]byte{}, key)
}

func TestTicket_leadsToItsCode(t *testing.T) {
	g := NewWithT(t)
	s := shopSettings()
	for _, method := range []verification.Method{verification.WhatsApp, verification.Telegram} {
		code := codeOf(s, string(method))
		ticket := sealTicket(s, method, code, ticketTime)
		g.Expect(ticket).To(HaveLen(59))
		g.Expect(ticket).To(MatchRegexp(`^[A-Za-z0-9_-]+$`))
		g.Expect(sealTicket(s, method, code, ticketTime)).To(Equal(ticket), "a retry answers the same page")
		leadsTo, valid := openTicket(s, ticket, ticketTime)
		g.Expect(valid).To(BeTrue())
		g.Expect(leadsTo.hasCode).To(BeTrue())
		g.Expect(leadsTo.code.Grouped()).To(Equal(code.Grouped()))
		g.Expect(leadsTo.id).To(Equal(verification.NewCodeSpace(s.Project).RequestID(code)))
		g.Expect(URL(s, method, code, ticketTime)).To(Equal("https://verify.example/phone/v/" + ticket))
	}
	g.Expect(sealTicket(s, verification.WhatsApp, codeOf(s, "a"), ticketTime)).NotTo(Equal(sealTicket(s, verification.Telegram, codeOf(s, "a"), ticketTime)))
	for _, change := range []func(*settings.Settings){
		func(s *settings.Settings) { s.Page = nil }, func(s *settings.Settings) { s.BaseURL = "" }, func(s *settings.Settings) { s.WhatsApp = nil },
	} {
		s := shopSettings()
		change(s)
		g.Expect(URL(s, verification.WhatsApp, codeOf(s, "a"), ticketTime)).To(BeEmpty())
	}
}

func TestProvenURL_leadsToItsRequestAlone(t *testing.T) {
	g := NewWithT(t)
	s := shopSettings()
	r := &verification.Request{ID: "vrabcdefghijklmnopqrstuvwx", Method: verification.WhatsApp, VerifiedBy: verification.Telegram}
	link := ProvenURL(s, r, ticketTime)
	ticket, found := strings.CutPrefix(link, "https://verify.example/phone/v/")
	g.Expect(found).To(BeTrue())
	g.Expect(ticket).To(HaveLen(70))
	g.Expect(ProvenURL(s, r, ticketTime)).To(Equal(link))
	leadsTo, valid := openTicket(s, ticket, ticketTime)
	g.Expect(valid).To(BeTrue())
	g.Expect(leadsTo.id).To(Equal(r.ID))
	g.Expect(leadsTo.hasCode).To(BeFalse())
	for i := range ticket {
		other := byte('A')
		if ticket[i] == 'A' {
			other = 'B'
		}
		_, valid := openTicket(s, ticket[:i]+string(other)+ticket[i+1:], ticketTime)
		g.Expect(valid).To(BeFalse(), "%d", i)
	}
	for _, text := range []string{r.ID, strings.TrimPrefix(r.ID, "vr"), ticket[:69], ticket + "A", strings.Repeat("A", 70)} {
		_, valid := openTicket(s, text, ticketTime)
		g.Expect(valid).To(BeFalse(), text)
	}
	otherProject := shopSettings()
	otherProject.Project = "books/other"
	_, valid = openTicket(otherProject, ticket, ticketTime)
	g.Expect(valid).To(BeFalse(), "of another project with the same secret")
	for _, change := range []func(*settings.Settings){
		func(s *settings.Settings) { s.Page = nil }, func(s *settings.Settings) { s.BaseURL = "" }, func(s *settings.Settings) { s.Telegram = nil },
	} {
		s := shopSettings()
		change(s)
		g.Expect(ProvenURL(s, r, ticketTime)).To(BeEmpty())
	}
}

// TestTicket_refusesAllOthers changes each character, and takes tickets of others.
func TestTicket_refusesAllOthers(t *testing.T) {
	g := NewWithT(t)
	s := shopSettings()
	ticket := sealTicket(s, verification.WhatsApp, codeOf(s, "a"), ticketTime)
	refused := map[string]string{
		"empty": "", "short": ticket[:58], "long": ticket + "A", "the code": codeOf(s, "a").Grouped(), "zeros": strings.Repeat("A", 59),
		"padding": ticket[:58] + "=", "standard base64": ticket[:58] + "+", "a line": ticket[:58] + "\n",
	}
	for i := range ticket {
		other := byte('A')
		if ticket[i] == 'A' {
			other = 'B'
		}
		refused["changed at "+string(rune('0'+i))] = ticket[:i] + string(other) + ticket[i+1:]
	}
	for name, text := range refused {
		_, valid := openTicket(s, text, ticketTime)
		g.Expect(valid).To(BeFalse(), name)
	}

	otherProject := shopSettings()
	otherProject.Project = "books/other"
	_, valid := openTicket(otherProject, ticket, ticketTime)
	g.Expect(valid).To(BeFalse(), "of another project with the same secret")
	otherSecret := shopSettings()
	otherSecret.WhatsApp.AppSecret = settings.NewSecret([]byte("another app secret"))
	_, valid = openTicket(otherSecret, ticket, ticketTime)
	g.Expect(valid).To(BeFalse(), "of another account")
}

func FuzzTicket(f *testing.F) {
	s := shopSettings()
	ticket := sealTicket(s, verification.Telegram, codeOf(s, "a"), ticketTime)
	f.Add(ticket)
	f.Add(strings.Repeat("_", 59))
	f.Fuzz(func(t *testing.T, text string) {
		if _, valid := openTicket(s, text, ticketTime); valid && text != ticket {
			t.Errorf("%q is taken for a ticket", text)
		}
	})
}
