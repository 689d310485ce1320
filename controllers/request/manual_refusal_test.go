package request

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/store/kubernetes"
	"github.com/phoneproof/phoneproof/internal/verification"
)

const (
	mobile  = "+4915112345678"
	premium = "+49900123456"
	// business is the project's own number.
	business = "+4915750000001"
)

func parseNumber(t *testing.T, e164 string) phone.Number {
	t.Helper()
	n, err := phone.FromE164(e164)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return n
}

// usableSettings are settings of a project with both messengers; edit changes them.
func usableSettings(edit func(*settings.Settings)) *settings.Settings {
	secret := settings.NewSecret([]byte("0123456789abcdef"))
	s := &settings.Settings{
		WhatsApp: &settings.WhatsApp{PhoneNumber: business, AppSecret: secret}, Telegram: &settings.Telegram{BotToken: secret},
		TTL: 10 * time.Minute, DisplayName: "Acme",
		Limits: verification.Limits{PerPhoneNumber: verification.Rate{Requests: 5, Period: 10 * time.Minute}, MaxStored: 1500},
	}
	if edit != nil {
		edit(s)
	}
	return s
}

func TestCheckSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		number  string
		method  verification.Method
		edit    func(*settings.Settings)
		reason  string
		message string
		recheck time.Duration
	}{
		"WhatsApp": {number: mobile, method: verification.WhatsApp},
		"Telegram": {number: mobile, method: verification.Telegram},
		"the other messenger's secrets do not matter": {
			number: mobile, method: verification.Telegram,
			edit: func(s *settings.Settings) { s.WhatsApp.AppSecret = settings.Secret{} },
		},
		"premium number": {
			number: premium, method: verification.WhatsApp,
			reason: verifyv1.ReasonPhoneNumberRefused, message: "spec.phoneNumber: ",
		},
		"own number": {
			number: business, method: verification.WhatsApp,
			reason: verifyv1.ReasonPhoneNumberRefused, message: "receives messages at",
		},
		"own number, by the other messenger, before what can change": {
			number: business, method: verification.Telegram, edit: func(s *settings.Settings) { s.Suspended = true },
			reason: verifyv1.ReasonPhoneNumberRefused, message: "receives messages at",
		},
		"own number in its other form": {
			number: "+551187654321", method: verification.WhatsApp,
			edit:   func(s *settings.Settings) { s.WhatsApp.PhoneNumber = "+5511987654321" },
			reason: verifyv1.ReasonPhoneNumberRefused, message: "receives messages at",
		},
		"former own number": {
			number: business, method: verification.Telegram, edit: func(s *settings.Settings) { s.WhatsApp = nil },
		},
		"a refused number comes before what can change": {
			number: premium, method: verification.WhatsApp, edit: func(s *settings.Settings) { s.Suspended, s.WhatsApp = true, nil },
			reason: verifyv1.ReasonPhoneNumberRefused, message: "spec.phoneNumber: ",
		},
		"suspended": {
			number: mobile, method: verification.WhatsApp, edit: func(s *settings.Settings) { s.Suspended = true },
			reason: verifyv1.ReasonSuspended, message: "spec.suspend",
		},
		"no WhatsApp account": {
			number: mobile, method: verification.WhatsApp, edit: func(s *settings.Settings) { s.WhatsApp = nil },
			reason: verifyv1.ReasonMethodNotConfigured, message: "no account for spec.method",
		},
		"no Telegram account": {
			number: mobile, method: verification.Telegram, edit: func(s *settings.Settings) { s.Telegram = nil },
			reason: verifyv1.ReasonMethodNotConfigured, message: "no account for spec.method",
		},
		"secrets not ready": {
			number: mobile, method: verification.WhatsApp, edit: func(s *settings.Settings) { s.WhatsApp.AppSecret = settings.Secret{} },
			reason: verifyv1.ReasonSecretsNotReady, message: "cannot be read yet",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := checkSettings(kubernetes.ManualRequest{Phone: parseNumber(t, tc.number), Method: tc.method}, usableSettings(tc.edit))
			if tc.reason == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			refused := asManualRefusal(fmt.Errorf("wrapped: %w", err))
			g.Expect(refused.reason).To(Equal(tc.reason))
			g.Expect(refused.message).To(ContainSubstring(tc.message))
			g.Expect(refused.message).NotTo(MatchRegexp("[0-9]{4}"), "a condition holds no number")
			g.Expect(refused.recheck).To(Equal(tc.recheck))
		})
	}
}

// TestAsManualRefusal_namesTheSetting names the setting that refused.
func TestAsManualRefusal_namesTheSetting(t *testing.T) {
	for limit, setting := range map[string]string{
		verification.LimitPerPhoneNumber: "rateLimit.perPhoneNumber", verification.LimitPerPrefix: "rateLimit.perPrefix",
		verification.LimitDeclined: "assurance.declineCooldown",
	} {
		NewWithT(t).Expect(asManualRefusal(verification.RateLimited(limit, time.Minute)).message).To(ContainSubstring(setting))
	}
}

func TestAsManualRefusal(t *testing.T) {
	for name, tc := range map[string]struct {
		err     error
		reason  string
		recheck time.Duration
	}{
		"nothing":   {err: nil},
		"not found": {err: verification.ErrNotFound},
		"conflict":  {err: verification.ErrConflict},
		"store down, whatever its cause": {
			err: verification.Unavailable(errors.New("connection refused")),
		},
		"unknown": {err: errors.New("broken")},
		"malformed, which matches not found too": {
			err: &kubernetes.MalformedError{Name: "a", Err: errors.New("spec.phoneNumber +4915112345678 is no number")}, reason: verifyv1.ReasonMalformed,
		},
		"refused content": {err: fmt.Errorf("put: %w", verification.ErrContent), reason: verifyv1.ReasonMalformed},
		"rate limited": {
			err:    verification.RateLimited(verification.LimitPerPhoneNumber, 7*time.Minute),
			reason: verifyv1.ReasonRateLimited, recheck: 7 * time.Minute,
		},
		"rate limited, without a time": {
			err: verification.RateLimited(verification.LimitPerPhoneNumber, 0), reason: verifyv1.ReasonRateLimited, recheck: minRecheck,
		},
		"declined": {
			err:    verification.RateLimited(verification.LimitDeclined, time.Hour),
			reason: verifyv1.ReasonRateLimited, recheck: time.Hour,
		},
		"too many stored": {
			err: verification.TooManyStored(time.Minute), reason: verifyv1.ReasonTooManyStored, recheck: time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			if tc.err != nil {
				tc.err = fmt.Errorf("complete manual request a: %w", tc.err)
			}
			refused := asManualRefusal(tc.err)
			if tc.reason == "" {
				g.Expect(refused).NotTo(HaveOccurred())
				return
			}
			g.Expect(refused.reason).To(Equal(tc.reason))
			g.Expect(refused.recheck).To(Equal(tc.recheck))
			g.Expect(refused.message).NotTo(MatchRegexp("[0-9]{4}"), "a condition holds nothing of the object")
			g.Expect(refused.message).NotTo(ContainSubstring("Retry-After"), "a condition has no headers")
			g.Expect(refused).To(MatchError(tc.reason + ": " + refused.message))
		})
	}
}
