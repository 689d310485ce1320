package settings

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

func TestFromProject_codes(t *testing.T) {
	g := NewWithT(t)
	p := newProject()
	none := settingsOf(p, newValues())
	g.Expect(none.WhatsApp.Codes).To(BeNil())
	g.Expect(none.Limits.Codes.Limited()).To(BeFalse())

	p.Spec.WhatsApp.Codes = &verifyv1.Codes{
		TemplateName: "phoneproof_code", Languages: []verifyv1.TemplateLanguage{"en", "pt_BR"},
		AllowedCountries: []verifyv1.Country{"DE", "JE"}, MaxPerDay: 600,
	}
	s := settingsOf(p, newValues())
	codes := s.WhatsApp.Codes
	g.Expect([]any{codes.TemplateName, codes.Languages, codes.Countries}).To(Equal([]any{
		"phoneproof_code", []string{"en", "pt_BR"}, map[phone.Region]bool{"DE": true, "JE": true},
	}))
	for name, row := range map[string]struct {
		scopes     []verifyv1.Scope
		test       bool
		share      int
		mayDeliver bool
	}{
		"the default of a key":    {nil, false, 600, false},
		"its scopes by name":      {[]verifyv1.Scope{verifyv1.ScopeInit, verifyv1.ScopeStatus, verifyv1.ScopeRead, verifyv1.ScopeRedeliver}, false, 600, false},
		"the scope":               {[]verifyv1.Scope{verifyv1.ScopeInit, verifyv1.ScopeDeliver}, false, 300, true},
		"the scope, a test key's": {[]verifyv1.Scope{verifyv1.ScopeInit, verifyv1.ScopeDeliver}, true, 600, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			changed := p.DeepCopy()
			changed.Spec.APIKeys[1].Scopes = []verifyv1.Scope{verifyv1.ScopeDeliver}
			changed.Spec.APIKeys[0].Scopes = row.scopes
			if row.test {
				changed.Spec.APIKeys[0].Mode = verifyv1.KeyModeTest
			}
			s := settingsOf(changed, newValues())
			g.Expect(s.LimitsOf(false).Codes).To(Equal(verification.CodeLimits{
				Project: verification.Rate{Requests: 600, Period: 24 * time.Hour},
				PerDay:  verification.Rate{Requests: row.share, Period: 24 * time.Hour},
				PerHour: verification.Rate{Requests: row.share / 6, Period: time.Hour},
			}))
			g.Expect(s.LimitsOf(true).Codes.Limited()).To(BeFalse(), "the codes of test keys cost nothing")
			g.Expect(s.Keys.DeliverNames()).To(HaveLen(600/row.share), "those that have a share")
			key, err := s.Keys.Find(apiKey("backend"), start)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(key.Has(ScopeDeliver)).To(Equal(row.mayDeliver))
		})
	}
}

func TestLanguageFor(t *testing.T) {
	codes := buildCodes(&verifyv1.Codes{Languages: []verifyv1.TemplateLanguage{"en_US", "de", "pt_BR", "zh_TW", "es"}})
	for locale, want := range map[string]string{
		"de": "de", "de-AT": "de", "pt-BR": "pt_BR", "pt": "pt_BR", "es-MX": "es", "en-GB": "en_US", "zh-Hant": "zh_TW",
		"nl": "en_US", "": "en_US", "?": "en_US", "x-private": "en_US",
	} {
		NewWithT(t).Expect(codes.LanguageFor(locale)).To(Equal(want), locale)
	}
}

// TestDeliveredCode_isOfTheWhatsAppAccount, whatever else proved the number, and the same on replicas that differ in when they read a secret.
func TestDeliveredCode_isOfTheWhatsAppAccount(t *testing.T) {
	g := NewWithT(t)
	now := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	before := NewSecret([]byte("the former secret"))
	after := before.replacedBy([]byte("the present secret"), now)
	of := func(app Secret) *Settings {
		return &Settings{Project: "p", WhatsApp: &WhatsApp{AppSecret: app}, Telegram: &Telegram{BotToken: NewSecret([]byte("bot"))}}
	}
	r := &verification.Request{ID: "vr1", Method: verification.WhatsApp, VerifiedBy: verification.Telegram, CreatedAt: now}
	g.Expect(of(before).CodeSecrets(r, now).Delivered).To(BeEmpty(), "no code was delivered")
	r.Terms.Deliver = verification.DeliverCode
	g.Expect(of(before).CodeSecrets(r, now)).To(Equal(verification.CodeSecrets{
		Session: [][]byte{[]byte("bot")}, Delivered: [][]byte{[]byte("the former secret")},
	}))

	early, ok := of(before).DeliveredCode(r, now)
	g.Expect(ok).To(BeTrue())
	late, _ := of(after).DeliveredCode(r, now)
	g.Expect(late.Reveal()).To(And(Equal(early.Reveal()), MatchRegexp(`^[0-9]{8}$`)))
	g.Expect(of(after).CodeSecrets(r, now.Add(Overlap-time.Second)).Delivered).To(HaveLen(2), "a code that was sent before still counts")
	g.Expect(of(after).CodeSecrets(r, now.Add(Overlap)).Delivered).To(Equal([][]byte{[]byte("the present secret")}))

	_, ok = of(Secret{}).DeliveredCode(r, now)
	g.Expect(ok).To(BeFalse(), "nothing could confirm it")
	r.Test = true
	zeros, ok := of(Secret{}).DeliveredCode(r, now)
	g.Expect(ok).To(BeTrue())
	g.Expect(zeros.Reveal()).To(Equal(verification.TestDelivered))
}
