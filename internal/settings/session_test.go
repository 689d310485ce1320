package settings

import (
	"bytes"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
)

func TestPurposeOf_choosesTheTitleByLocale(t *testing.T) {
	s := &Settings{Purposes: buildPurposes([]verifyv1.Purpose{
		{Name: "sign-in", Title: "Sign in", Titles: map[string]verifyv1.PurposeTitle{
			"de": "Anmeldung", "pt-BR": "Entrar", "zh-Hant": "登入", "es-419": "Ingresar", "x-private": "Private", "xx-yyyyyyyyy": "None",
		}},
		{Name: "pay", Title: "Pay"},
	})}
	for name, c := range map[string]struct{ purpose, locale, want string }{
		"its language":             {"sign-in", "de", "Anmeldung"},
		"a region of the language": {"sign-in", "de-AT", "Anmeldung"},
		"its region":               {"sign-in", "pt-BR", "Entrar"},
		"its script":               {"sign-in", "zh-TW", "登入"},
		"another script":           {"sign-in", "zh-Hans", "Sign in"},
		"a country of a region":    {"sign-in", "es-MX", "Ingresar"},
		"another language":         {"sign-in", "nl", "Sign in"},
		"of no title":              {"sign-in", "fr", "Sign in"},
		"no locale":                {"sign-in", "", "Sign in"},
		"no language":              {"sign-in", "?", "Sign in"},
		"no titles":                {"pay", "de", "Pay"},
		"no purpose":               {"", "de", ""},
		"one that was removed":     {"sign-out", "de", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := &verification.Request{Terms: verification.Terms{Purpose: c.purpose}}
			r.Locale = c.locale
			NewWithT(t).Expect(s.PurposeOf(r)).To(Equal(c.want))
		})
	}
	NewWithT(t).Expect((&Settings{}).PurposeOf(&verification.Request{Terms: verification.Terms{Purpose: "sign-in"}})).To(BeEmpty())
	NewWithT(t).Expect(buildPurposes(nil)).To(BeNil())
}

// All replicas choose the same title, whatever the order in which they read a map.
func TestPurposeOf_isTheSameEverywhere(t *testing.T) {
	g := NewWithT(t)
	r := &verification.Request{Terms: verification.Terms{Purpose: "a"}}
	for range 100 {
		s := &Settings{Purposes: buildPurposes([]verifyv1.Purpose{{Name: "a", Title: "A", Titles: map[string]verifyv1.PurposeTitle{
			"de": "second", "DE": "first", "de-AT": "third", "de-CH": "fourth",
		}}})}
		r.Locale = "de"
		g.Expect(s.PurposeOf(r)).To(Equal("first"))
		r.Locale = "de-CH"
		g.Expect(s.PurposeOf(r)).To(Equal("fourth"))
	}
}

func TestAllowsSession(t *testing.T) {
	g := NewWithT(t)
	for policy, allowed := range map[SendPolicy]bool{
		SendAlways: true, SendOnTrouble: true, SendNever: false,
	} {
		g.Expect((&Settings{Replies: Replies{Send: policy}}).AllowsSession()).To(Equal(allowed))
	}
}

// While a secret is changed, replicas have either value: all give the codes of the former one first, and accept those of both.
func TestCodeSecrets_duringARotation(t *testing.T) {
	g := NewWithT(t)
	now := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	before := NewSecret([]byte("the former secret"))
	after := before.replacedBy([]byte("the present secret"), now)
	r := &verification.Request{ID: "vr1", Method: verification.Telegram, CreatedAt: now}
	for name, of := range map[string]func(Secret) *Settings{
		"WhatsApp": func(s Secret) *Settings { return &Settings{Project: "p", WhatsApp: &WhatsApp{AppSecret: s}} },
		"Telegram": func(s Secret) *Settings { return &Settings{Project: "p", Telegram: &Telegram{BotToken: s}} },
	} {
		r.VerifiedBy = verification.Method("")
		if name == "WhatsApp" {
			r.VerifiedBy = verification.WhatsApp // the messenger that proved it counts, and not the one of init
		}
		late, early := of(after), of(before)
		g.Expect(late.SessionSecret(r, now)).To(Equal(early.SessionSecret(r, now)), "a replica that has not read the new one accepts it")
		g.Expect(late.CodeSecrets(r, now).Session).To(ConsistOf([]byte("the former secret"), []byte("the present secret")))
		given, ok := early.SessionCodes(r, now)
		g.Expect(ok).To(BeTrue())
		again, _ := late.SessionCodes(r, now)
		g.Expect(again.Digits.Reveal()).To(Equal(given.Digits.Reveal()), "a redelivery says the same")
		g.Expect(late.SessionSecret(r, now.Add(spreadTime))).To(Equal([]byte("the present secret")))
		g.Expect(late.CodeSecrets(r, now.Add(Overlap-time.Second)).Session).To(HaveLen(2), "a code that was given before still counts")
		g.Expect(late.CodeSecrets(r, now.Add(Overlap)).Session).To(Equal([][]byte{[]byte("the present secret")}))
	}
}

func TestCodeSecrets_areThoseOfTheAccount(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	s := &Settings{
		Project: "p", WhatsApp: &WhatsApp{AppSecret: NewSecret([]byte("app"))}, Telegram: &Telegram{BotToken: NewSecret([]byte("bot"))},
	}
	r := &verification.Request{Method: verification.WhatsApp}
	g.Expect(s.CodeSecrets(r, now).Session).To(Equal([][]byte{[]byte("app")}))
	r.VerifiedBy = verification.Telegram
	g.Expect(s.CodeSecrets(r, now).Session).To(Equal([][]byte{[]byte("bot")}))
	for name, without := range map[string]*Settings{
		"no account":         {WhatsApp: s.WhatsApp},
		"an unusable secret": {WhatsApp: s.WhatsApp, Telegram: &Telegram{}},
	} {
		g.Expect(without.CodeSecrets(r, now).Session).To(BeEmpty(), name)
		_, ok := without.SessionCodes(r, now)
		g.Expect(ok).To(BeFalse(), name)
	}
	g.Expect(bytes.Equal(s.AccountSecret("SMS").Current(), nil)).To(BeTrue())
}

func TestFromProject_assurance(t *testing.T) {
	g := NewWithT(t)
	project := &verifyv1.VerificationProject{}
	s := FromProject(project, Secrets{})
	g.Expect(s.Level).To(Equal(verification.LevelPossession))
	g.Expect(s.Limits.DeclineCooldown).To(BeZero())
	g.Expect(s.Purposes).To(BeNil())
	project.Spec.Assurance = &verifyv1.AssuranceSettings{Level: verifyv1.AssuranceLevelSession}
	project.Spec.Purposes = []verifyv1.Purpose{{Name: "sign-in", Title: "Sign in"}}
	s = FromProject(project, Secrets{})
	g.Expect(s.Level).To(Equal(verification.LevelSession))
	g.Expect(s.Limits.DeclineCooldown).To(Equal(time.Hour), "the default")
	g.Expect(s.Purposes).To(HaveKey("sign-in"))
}
