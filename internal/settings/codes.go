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
	c := &Codes{TemplateName: spec.TemplateName, Countries: convertCountries(spec.AllowedCountries)}
	tags := make([]language.Tag, 0, len(spec.Languages))
	for _, name := range spec.Languages {
		c.Languages = append(c.Languages, string(name))
		tags = append(tags, language.Make(strings.ReplaceAll(string(name), "_", "-")))
	}
	c.matcher = language.NewMatcher(tags)
	return c
}

// GatewayCodes are the codes that a project sends through Telegram's Gateway.
type GatewayCodes struct {
	// Token is that of the Gateway's account.
	Token Secret
	// SenderUsername is the channel that users see as the sender; empty for Telegram's own.
	SenderUsername string
	// Countries are those that codes are sent to.
	Countries map[phone.Region]bool
	// Simulated reports whether the account exists at the simulator. Its token is sent nowhere else.
	Simulated bool
}

func buildGatewayCodes(spec *verifyv1.GatewayCodes, secrets Secrets) *GatewayCodes {
	if spec == nil {
		return nil
	}
	token := secrets.secretAt(fieldGatewayToken)
	return &GatewayCodes{
		Token: token, SenderUsername: spec.SenderUsername, Countries: convertCountries(spec.AllowedCountries),
		Simulated: Simulated(token.Current()),
	}
}

func convertCountries(spec []verifyv1.Country) map[phone.Region]bool {
	countries := make(map[phone.Region]bool, len(spec))
	for _, country := range spec {
		countries[phone.Region(country)] = true
	}
	return countries
}

// CodeCountries returns the countries that codes are sent to through a messenger; false if none are sent.
func (s *Settings) CodeCountries(m verification.Method) (map[phone.Region]bool, bool) {
	switch {
	case m == verification.WhatsApp && s.WhatsApp != nil && s.WhatsApp.Codes != nil:
		return s.WhatsApp.Codes.Countries, true
	case m == verification.Telegram && s.Telegram != nil && s.Telegram.Codes != nil:
		return s.Telegram.Codes.Countries, true
	default:
		return nil, false
	}
}

// CanSendCodes reports whether the token that codes are sent with through a messenger can be used.
func (s *Settings) CanSendCodes(m verification.Method) bool {
	if m == verification.Telegram {
		return s.Telegram.Codes.Token.Usable()
	}
	return s.WhatsApp.AccessToken.Usable()
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
		secrets.Delivered = s.AccountSecret(r.Method).Accepted(now)
	}
	return secrets
}

// DeliveredCode returns the digits that are sent to the number of a request; false if the account at its messenger has no secret. All
// replicas make the same.
func (s *Settings) DeliveredCode(r *verification.Request, now time.Time) (redact.Value[string], bool) {
	secret := s.AccountSecret(r.Method).Shared(now)
	if len(secret) == 0 && !r.Test {
		return redact.Value[string]{}, false
	}
	return verification.NewCodeSpace(s.Project).DeliveredCode(secret, r), true
}
