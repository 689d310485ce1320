package settings

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// provenRequest returns a request that WhatsApp proved, in German.
func provenRequest() *verification.Request {
	return &verification.Request{
		ID: "vraaaaaaaaaaaaaaaaaaaaaaaa", Method: verification.WhatsApp, CreatedAt: start, ProvenAt: start,
		ClientData: verification.ClientData{Locale: "de", ReturnURL: "https://shop.example/account"},
		Terms:      verification.Terms{Level: verification.LevelSession, Purpose: "sign-in", Browser: "EDGE/MACOS"},
	}
}

func sessionSettings() *Settings {
	p := newProject()
	p.Spec.Purposes = []verifyv1.Purpose{{Name: "sign-in", Title: "Sign in", Titles: map[string]verifyv1.PurposeTitle{"de": "Anmeldung"}}}
	s := settingsOf(p, newValues())
	s.Page = &Page{ReturnURLs: []string{"https://shop.example"}}
	return s
}

func TestSessionMessage(t *testing.T) {
	const page = "https://verify.example/v/ticket"
	g, s, r := NewWithT(t), sessionSettings(), provenRequest()
	codes, ok := s.SessionCodes(r, start)
	g.Expect(ok).To(BeTrue())
	link := page + "/return?code=" + codes.Return.Reveal()
	text, ok := s.SessionMessage(r, page, 1024, start)
	g.Expect(ok).To(BeTrue())
	g.Expect(text).To(And(ContainSubstring("\nZweck: Anmeldung\nBegonnen in: Edge, macOS\n\nCode: "+codes.Digits.Reveal()), HaveSuffix("\n"+link)))

	exact, _ := s.SessionMessage(r, page, len([]rune(text)), start)
	g.Expect(exact).To(Equal(text))
	short, _ := s.SessionMessage(r, page, len([]rune(text))-1, start)
	g.Expect(short).To(And(ContainSubstring(codes.Digits.Reveal()), HaveSuffix("Damit ist es beendet.")), "nothing is cut")

	for name, edit := range map[string]func(*Settings, *verification.Request){
		"no return URL":      func(_ *Settings, r *verification.Request) { r.ReturnURL = "" },
		"another return URL": func(_ *Settings, r *verification.Request) { r.ReturnURL = "https://shop.example.evil.example/" },
		"no page":            func(s *Settings, _ *verification.Request) { s.Page = nil },
	} {
		s, r := sessionSettings(), provenRequest()
		edit(s, r)
		text, _ := s.SessionMessage(r, page, 1024, start)
		g.Expect(text).To(And(ContainSubstring(codes.Digits.Reveal()), Not(ContainSubstring("http"))), name)
	}
	text, _ = s.SessionMessage(r, "", 1024, start)
	g.Expect(text).NotTo(ContainSubstring("http"), "the page is not known")

	r.Terms = verification.Terms{Level: verification.LevelSession, Purpose: "gone", Browser: "free text of a caller"}
	text, _ = s.SessionMessage(r, page, 1024, start)
	g.Expect(text).NotTo(Or(ContainSubstring("Zweck"), ContainSubstring("gone"), ContainSubstring("Begonnen"), ContainSubstring("free text")))

	s.WhatsApp.AppSecret = Secret{}
	_, ok = s.SessionMessage(r, page, 1024, start)
	g.Expect(ok).To(BeFalse())
}

// TestLive_keepsFormerLabels changes the title of the button that declines while it is shown to users.
func TestLive_keepsFormerLabels(t *testing.T) {
	g := NewWithT(t)
	f := newFixture(t)
	title := func(title verifyv1.ButtonText) func(*verifyv1.VerificationProjectSpec) {
		return func(s *verifyv1.VerificationProjectSpec) {
			s.Texts = []verifyv1.Texts{{Locale: "es", ButtonNotMe: title}}
		}
	}
	counts := func(text string) bool { return f.Current().IsNotMe(text, f.clock.Now()) }
	f.setPrepared(t, "", title("Fuera"))
	f.clock.Step(f.Current().TTL)
	g.Expect(counts("Fuera")).To(BeTrue())
	g.Expect(counts(" fuera\n")).To(BeTrue(), "typed")
	for _, text := range []string{"No soy yo", "", "Fuera de aquí", "Fue"} {
		g.Expect(counts(text)).To(BeFalse(), text)
	}
	f.setPrepared(t, "", title("Largo"))
	g.Expect(counts("Largo")).To(BeTrue())
	g.Expect(counts("Fuera")).To(BeTrue(), "it is shown to users of requests from before")
	f.clock.Step(f.Current().TTL)
	g.Expect(counts("Fuera")).To(BeFalse())
	g.Expect(counts(strings.ToUpper("Not me"))).To(BeTrue(), "in any language")
	g.Expect(f.Current().TTL).To(BeNumerically(">", time.Minute))
}
