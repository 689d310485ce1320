package request

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/internal/webhook"
)

// inbox is a receiver that keeps what it was sent.
type inbox struct {
	*httptest.Server

	mu     sync.Mutex
	bodies []string
	signed []string // the signature of each
}

func newInbox(t *testing.T) *inbox {
	t.Helper()
	box := &inbox{}
	box.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		box.mu.Lock()
		defer box.mu.Unlock()
		box.bodies = append(box.bodies, string(body))
		box.signed = append(box.signed, r.Header.Get("X-Webhook-Signature"))
	}))
	t.Cleanup(box.Close)
	return box
}

func (b *inbox) received() (bodies, signatures []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.bodies), slices.Clone(b.signed)
}

// signBody returns the signature of an event by a secret.
func signBody(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

// TestTestKey_eventsNeverReachTheLiveReceiver (attack B9), over real HTTP, at every outcome, and after a redelivery; nor the reverse. Each
// receiver gets signatures by its own secret.
func TestTestKey_eventsNeverReachTheLiveReceiver(t *testing.T) {
	const liveSecret, testSecret = "the secret of real events", "the secret of test events"
	w := newScriptedReceiver(t)
	live, test := newInbox(t), newInbox(t)
	kinds := verification.NewEventKinds(
		verification.EventSuccess, verification.EventExpired, verification.EventDeclined, verification.EventAttention)
	w.settings.Webhook = &settings.Webhook{
		URL: live.URL, TestURL: test.URL, Events: kinds.WithTests(), Signed: true,
		Secret: settings.NewSecret([]byte(liveSecret)), TestSecret: settings.NewSecret([]byte(testSecret)),
	}
	registry := prometheus.NewRegistry()
	sender := webhook.NewSender(webhook.Options{
		Guard: webhook.NewDevGuard(webhook.GuardConfig{}), Registerer: registry,
	})
	t.Cleanup(sender.Close)
	attempted := 0
	w.controller = New(Options{
		Store: w.store, Settings: func() *settings.Settings { return w.settings }, Sender: sender, Namespace: "shop", Clock: w.clock,
		Attempted: func(verification.Attempt) { attempted++ },
	})
	for i, number := range []string{"+12025550110", "+12025550113", "+12025550114", "+12025550115"} {
		id := string(rune('a' + i))
		w.createTest(id, number)
		w.reconcile(Item{ID: id})
	}
	bodies, signed := test.received()
	w.Expect(bodies).To(HaveLen(4))
	for i, body := range bodies {
		w.Expect(signed[i]).To(Equal(signBody(testSecret, body)))
		w.Expect(body).To(And(HavePrefix(`{"event":"test.verification.`), ContainSubstring(`"test":true`)))
	}
	_, err := w.store.Update(t.Context(), "a", func(r *verification.Request, now time.Time) error {
		return r.Redeliver("again", now, w.settings.EventKinds())
	})
	w.Expect(err).NotTo(HaveOccurred())
	w.reconcile(Item{ID: "a"})
	bodies, _ = test.received()
	w.Expect(bodies).To(HaveLen(5))
	w.Expect(bodies[4]).To(Equal(bodies[0]), "the same event once more")
	toLive, _ := live.received()
	w.Expect(toLive).To(BeEmpty())
	w.Expect(attempted).To(BeZero(), "the live receiver's condition follows from live events")
	families, err := registry.Gather()
	w.Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		w.Expect(family.GetName()).NotTo(Equal("phoneproof_webhook_attempts_total"), "and so do its metrics")
	}

	w.verify("live")
	w.reconcile(Item{ID: "live"})
	toLive, signed = live.received()
	w.Expect(toLive).To(HaveLen(1))
	w.Expect(signed[0]).To(Equal(signBody(liveSecret, toLive[0])))
	w.Expect(toLive[0]).To(And(HavePrefix(`{"event":"verification.success"`), Not(ContainSubstring("test"))))
	bodies, _ = test.received()
	w.Expect(bodies).To(HaveLen(5))
	w.Expect(attempted).To(Equal(1))
}

// TestTestKey_hasNoEventWithoutItsReceiver, or without its secret: nothing is due, and nothing is sent to the live receiver in its place.
func TestTestKey_hasNoEventWithoutItsReceiver(t *testing.T) {
	w := newScriptedReceiver(t)
	w.answer = func(int) (webhook.Result, error) {
		w.Fail("an event of a test key was sent")
		return webhook.Result{}, context.Canceled
	}
	w.createTest("a", "+12025550110")
	w.reconcile(Item{ID: "a"})
	r := w.get("a")
	w.Expect(r.Phase).To(Equal(verification.Verified))
	w.Expect(r.Delivery).To(BeZero())
}

func (s *storedRequests) createTest(id, e164 string) {
	s.t.Helper()
	number, err := phone.FromE164(e164)
	s.Expect(err).NotTo(HaveOccurred())
	_, err = s.store.Create(s.t.Context(), verification.New{
		ID: id, Phone: number, Method: verification.WhatsApp, TTL: ttl, Test: true, KeyName: "staging",
	}, verification.Limits{})
	s.Expect(err).NotTo(HaveOccurred())
}
