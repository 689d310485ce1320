package settings

import (
	"bytes"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

const (
	oneWebhook     = "the first webhook secret"
	anotherWebhook = "the next webhook secret!"
	malformed      = "whsec_!!!"
)

func TestNewWebhookSecret(t *testing.T) {
	g := NewWithT(t)
	seen := map[string]bool{}
	for range 100 {
		secret, err := NewWebhookSecret(rand.Reader)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(secret).To(MatchRegexp(`^whsec_[0-9A-Za-z+/]{43}=$`))
		g.Expect(kindWebhook.acceptValue([]byte(secret))).To(BeEquivalentTo(secret))
		seen[secret] = true
	}
	g.Expect(seen).To(HaveLen(100))
	broken := errors.New("broken")
	_, err := NewWebhookSecret(iotest.ErrReader(broken))
	g.Expect(err).To(MatchError(broken))
	_, err = NewWebhookSecret(bytes.NewReader(make([]byte, 31)))
	g.Expect(err).To(HaveOccurred())
}

func TestWebhookKey(t *testing.T) {
	g := NewWithT(t)
	g.Expect(WebhookKey([]byte("whsec_AAEC/w=="))).To(Equal([]byte{0, 1, 2, 0xff}))
	g.Expect(WebhookKey([]byte("AAEC/w=="))).To(BeEquivalentTo("AAEC/w=="))
	g.Expect(WebhookKey([]byte("Whsec_AAEC/w=="))).To(BeEquivalentTo("Whsec_AAEC/w=="))
	for _, bad := range []string{malformed, "whsec_AAEC/w", "whsec_AAEC_w==", "whsec_AAEC\n/w=="} {
		_, err := WebhookKey([]byte(bad))
		g.Expect(err).To(MatchError(errNotBase64), bad)
		g.Expect(err.Error()).NotTo(ContainSubstring(strings.TrimPrefix(bad, webhookPrefix)))
	}
}

// TestSecrets_malformed_webhook checks that the value before a malformed webhook secret signs for one Overlap.
func TestSecrets_malformed_webhook(t *testing.T) {
	const (
		end = Overlap
		a   = oneWebhook
		b   = anotherWebhook
		bad = malformed
	)
	for name, steps := range map[string][]step{
		"at first":            {{0, bad, ""}, {0, a, a}},
		"to the end":          {{0, a, a}, {0, bad, a}, {end - 1, bad, a}, {1, bad, ""}},
		"another mistake":     {{0, a, a}, {0, bad, a}, {end - 1, "x", a}, {1, bad, ""}},
		"a sample's":          {{0, a, a}, {0, "REPLACE-me", a}, {end, "REPLACE-me", ""}},
		"solved":              {{0, a, a}, {0, bad, a}, {time.Minute, b, b + " " + a}, {end, b, b}},
		"back":                {{0, a, a}, {0, bad, a}, {time.Minute, a, a}, {time.Minute, bad, a}, {end - 1, bad, a}, {1, bad, ""}},
		"after the end":       {{0, a, a}, {0, bad, a}, {end, bad, ""}, {0, b, b}},
		"replaced before":     {{0, a, a}, {0, b, b + " " + a}, {time.Minute, bad, b + " " + a}, {end - time.Minute, bad, b}, {time.Minute, bad, ""}},
		"deleted, a decision": {{0, a, a}, {0, bad, a}, {0, "-", ""}, {0, bad, ""}},
		"emptied, a decision": {{0, a, a}, {0, "", ""}},
		"disk fails":          {{0, a, a}, {0, bad, a}, {end - 1, "!", a}, {1, bad, ""}},
	} {
		t.Run(name, func(t *testing.T) { checkSteps(t, use{fieldWebhookSecret, ref("shop", "app"), kindWebhook}, steps) })
	}
}

// TestLive_malformed_webhook checks that the problem is reported at once, and that events use the former value, then wait.
func TestLive_malformed_webhook(t *testing.T) {
	g := NewWithT(t)
	f := newFixture(t)
	f.writeSecret(t, "webhook", malformed)
	g.Expect(f.Problems()).To(Equal([]Problem{problem(fieldWebhookSecret, "webhook", ReasonNotBase64)}))
	g.Expect(f.Current().EventPolicy()).To(Equal(verification.EventsOn))
	g.Expect(joinAccepted(f.Current().Webhook.Secret, start)).To(Equal(goodWebhook))

	changes, cancel := f.Subscribe()
	defer cancel()
	f.clock.Step(Overlap)
	f.reloadSecrets()
	g.Expect(f.Current().EventPolicy()).To(Equal(verification.EventsPaused))
	g.Expect(changes).To(Receive())
	f.reloadSecrets()
	g.Expect(changes).NotTo(Receive())

	f.writeSecret(t, "webhook", oneWebhook)
	g.Expect(f.Problems()).To(BeEmpty())
	g.Expect(f.Current().EventPolicy()).To(Equal(verification.EventsOn))
	g.Expect(joinAccepted(f.Current().Webhook.Secret, f.clock.Now())).To(Equal(oneWebhook))
	g.Expect(f.logged()).To(And(
		ContainSubstring(`"level":"WARN","msg":"secret cannot be used","field":"spec.webhook.secretRef","secretName":"shop","secretKey":"webhook","reason":"NotBase64"`),
		ContainSubstring(`"level":"WARN","msg":"former secret value expired","field":"spec.webhook.secretRef"`),
		Not(ContainSubstring("!!!")), Not(ContainSubstring(canary)),
	))
}

// TestLive_malformed_webhook_at_the_start checks that events wait from the start if there is no former value.
func TestLive_malformed_webhook_at_the_start(t *testing.T) {
	for _, bad := range []string{"x", malformed} {
		g := NewWithT(t)
		values := newValues()
		values["webhook"] = bad
		s := settingsOf(newProject(), values)
		g.Expect(s.EventPolicy()).To(Equal(verification.EventsPaused), bad)
		values["webhook"], values["webhook-previous"] = goodWebhook, bad
		s = settingsOf(newProject(), values)
		g.Expect(s.EventPolicy()).To(Equal(verification.EventsOn))
		g.Expect(s.Webhook.PreviousSecret.Usable()).To(BeTrue(), "a previous secret may be older than the rules")
		g.Expect(s.Problems).To(BeEmpty())
	}
}
