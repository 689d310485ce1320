package settings

import (
	"strings"
	"time"

	"golang.org/x/text/language"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/redact"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// Codes are the codes that a project sends through WhatsApp.
type Codes struct {
	TemplateName string
	// Languages are those of the template as Meta names them, such as pt_BR. The first is for users who read none of them.
	Languages []string
	// Countries are those that codes are sent to.
	Countries map[phone.Region]bool

	matcher language.Matcher
}

func buildCodes(spec *verifyv1.Codes) *Codes {
	if spec == nil {
		return nil
	}
	c := &Codes{TemplateName: spec.TemplateName, Countries: map[phone.Region]bool{}}
	for _, country := range spec.AllowedCountries {
		c.Countries[phone.Region(country)] = true
	}
	tags := make([]language.Tag, 0, len(spec.Languages))
	for _, name := range spec.Languages {
		c.Languages = append(c.Languages, string(name))
		tags = append(tags, language.Make(strings.ReplaceAll(string(name), "_", "-")))
	}
	c.matcher = language.NewMatcher(tags)
	return c
}

// LanguageFor returns the language of the template, as Meta names it, that suits a BCP 47 tag best.
func (c *Codes) LanguageFor(locale string) string {
	_, i, _ := c.matcher.Match(language.Make(locale))
	return c.Languages[i]
}

// CodeSecrets returns the secrets that the codes of a request may have been made with.
func (s *Settings) CodeSecrets(r *verification.Request, now time.Time) verification.CodeSecrets {
	if r.Test {
		return verification.CodeSecrets{Session: verification.TestSecrets(), Delivered: verification.TestSecrets()}
	}
	secrets := verification.CodeSecrets{Session: s.AccountSecret(r.UsedMethod()).Accepted(now)}
	if r.DeliversCode() {
		secrets.Delivered = s.AccountSecret(verification.WhatsApp).Accepted(now)
	}
	return secrets
}

// DeliveredCode returns the digits that are sent to the number of a request; false if the WhatsApp account has no secret. All replicas
// make the same.
func (s *Settings) DeliveredCode(r *verification.Request, now time.Time) (redact.Value[string], bool) {
	secret := s.AccountSecret(verification.WhatsApp).Shared(now)
	if len(secret) == 0 && !r.Test {
		return redact.Value[string]{}, false
	}
	return verification.NewCodeSpace(s.Project).DeliveredCode(secret, r), true
}
