package settings

import (
	"slices"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/texts"
)

// setPrepared sets the Spanish prepared text of the fixture's project; none if it is empty.
func (f *fixture) setPrepared(t *testing.T, prepared string, edits ...func(*verifyv1.VerificationProjectSpec)) {
	t.Helper()
	p := newProject()
	if prepared != "" {
		p.Spec.Texts = []verifyv1.Texts{{Locale: "es", Prepared: verifyv1.PreparedText(prepared)}}
	}
	for _, edit := range edits {
		edit(&p.Spec)
	}
	NewWithT(t).Expect(f.SetProject(p)).To(Succeed())
}

// TestLive_keepsFormerTexts changes spec.texts while requests with its former sentences are open.
func TestLive_keepsFormerTexts(t *testing.T) {
	g := NewWithT(t)
	f := newFixture(t)
	const first, second = "Uno {name} {code}", "Dos {name} {code}"
	builtIn := texts.BuiltIn().In("es").Prepared
	accepted := func() []string { return slices.Collect(f.Current().PreparedTexts(f.clock.Now())) }
	g.Expect(accepted()).To(ConsistOf(texts.BuiltIn().Prepared()))

	f.setPrepared(t, first)
	g.Expect(accepted()[:12]).To(And(ContainElement(first), Not(ContainElement(builtIn))), "those of now come before")
	g.Expect(accepted()).To(ContainElement(builtIn))
	f.clock.Step(5 * time.Minute)
	f.setPrepared(t, second)
	g.Expect(accepted()).To(ContainElements(second, first, builtIn))

	f.writeSecret(t, "app", "fedcba9876543210fedcba9876543210")
	f.setPrepared(t, second, func(s *verifyv1.VerificationProjectSpec) { s.DisplayName = "Another name" })
	g.Expect(accepted()).To(ContainElements(second, first, builtIn), "whatever else changes")

	f.clock.Step(5*time.Minute - 1)
	g.Expect(accepted()).To(ContainElement(builtIn), "10 minutes is the ttl")
	f.clock.Step(1)
	g.Expect(accepted()).To(And(ContainElements(second, first), Not(ContainElement(builtIn))), "without another read of anything")
	f.clock.Step(5 * time.Minute)
	g.Expect(accepted()).To(ConsistOf(f.Current().Texts.Prepared()))
	f.writeSecret(t, "app", goodAppSecret)
	g.Expect(f.Current().FormerTexts).To(BeEmpty(), "they leave the memory")
}

// TestLive_keepsFormerTexts_asLongAsTheirRequests has a ttl that was changed, too: the former one counts.
func TestLive_keepsFormerTexts_asLongAsTheirRequests(t *testing.T) {
	g := NewWithT(t)
	f := newFixture(t)
	f.setPrepared(t, "Uno {name} {code}", func(s *verifyv1.VerificationProjectSpec) { s.Request.TTL = "1h" })
	f.setPrepared(t, "Dos {name} {code}", func(s *verifyv1.VerificationProjectSpec) { s.Request.TTL = "1m" })
	f.clock.Step(time.Hour - 1)
	g.Expect(slices.Collect(f.Current().PreparedTexts(f.clock.Now()))).To(ContainElement("Uno {name} {code}"))
}

// TestLive_keepsFewFormerTexts changes them all the time: what a message is compared with stays bounded.
func TestLive_keepsFewFormerTexts(t *testing.T) {
	g := NewWithT(t)
	f := newFixture(t)
	for i := range 100 {
		f.setPrepared(t, strconv.Itoa(i)+" {name} {code}")
	}
	g.Expect(f.Current().FormerTexts).To(HaveLen(maxFormerTexts))
	g.Expect(f.Current().FormerTexts[0].Texts.In("es").Prepared).To(Equal("98 {name} {code}"), "the latest")
}

// TestFromProject_texts: a text of the language comes before one for all languages, and that before the built-in one.
func TestFromProject_texts(t *testing.T) {
	g := NewWithT(t)
	p := newProject()
	p.Spec.Replies = &verifyv1.Replies{Verified: "for all", Unknown: "unknown for all"}
	every := verifyv1.Texts{
		Locale: "es", Prepared: "p {name} {code}", Verified: "v", WrongNumber: "w", Expired: "e", Unknown: "u", ShareContact: "s", NumberHidden: "n",
		TextRefused: "x", ContactRefused: "y", NumberAnonymous: "z", Confirm: "c", TextChanged: "t", TapRefused: "r", EchoQuestion: "q", Declined: "d", ButtonConfirm: "1", ButtonNotMe: "2", ButtonShare: "3",
	}
	p.Spec.Texts = []verifyv1.Texts{every, {Locale: "nl", Expired: "te laat"}}
	s := settingsOf(p, newValues())
	builtIn := texts.BuiltIn().In("es")
	g.Expect(*s.TextsIn("es-MX")).To(Equal(texts.Texts{
		Prepared: "p {name} {code}", Verified: "v", WrongNumber: "w", Expired: "e", Unknown: "u", ShareContact: "s", NumberHidden: "n",
		TextRefused: "x", ContactRefused: "y", NumberAnonymous: "z", Confirm: "c", TextChanged: "t", TapRefused: "r", EchoQuestion: "q", Declined: "d", ButtonConfirm: "1", ButtonNotMe: "2", TelegramButton: "3",
		TelegramWrongNumber: "w", TelegramExpired: "e", TelegramUnknown: "u", TelegramShareContact: "s",
		Session: builtIn.Session, SessionPurpose: builtIn.SessionPurpose, SessionBrowser: builtIn.SessionBrowser,
		SessionCode: builtIn.SessionCode, SessionLink: builtIn.SessionLink,
	}), "each field is its own")
	g.Expect(s.TextsIn("nl").Expired).To(Equal("te laat"))
	g.Expect(s.TextsIn("nl").Verified).To(Equal("for all"))
	g.Expect(s.TextsIn("nl").ButtonConfirm).To(Equal("Confirm"))
	g.Expect(s.TextsIn("fr").Verified).To(Equal("for all"))
	g.Expect(s.TextsIn("fr").Expired).To(Equal(texts.BuiltIn().In("fr").Expired))
	g.Expect(s.TextsIn("").Unknown).To(Equal("unknown for all"), "the language of a stranger is not known")
	g.Expect(s.MatchLocale("nl-BE")).To(Equal("nl"))
}
