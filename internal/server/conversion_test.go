package server

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/store/memory"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// counter is a store that counts how often it is asked.
type counter struct {
	stored verification.Stored
	err    error
	asked  int
}

func (c *counter) Stored(context.Context) (verification.Stored, error) {
	c.asked++
	return c.stored, c.err
}

func (c *counter) Activity(context.Context, verification.Method, time.Time) (verification.Activity, error) {
	return verification.Activity{}, c.err
}

func (c *counter) CodesStarted(context.Context, verification.Method, time.Time) (map[string]int, error) {
	return nil, c.err
}

// TestConversions_storedRequests asks the store once in a while, however often metrics are scraped, and tells nothing old.
func TestConversions_storedRequests(t *testing.T) {
	g := NewWithT(t)
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0))
	store := &counter{stored: verification.Stored{Pending: 3, Undelivered: 2, Finished: 1}}
	registry := prometheus.NewRegistry()
	_, err := newConversions(registry, store, nil, clock, logr.Discard())
	g.Expect(err).NotTo(HaveOccurred())
	for range 3 {
		g.Expect(testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP phoneproof_stored_requests Stored requests, by what they wait for: pending, undelivered or finished. PostgreSQL counts up to 10,000 of each. Every replica reports the same requests.
# TYPE phoneproof_stored_requests gauge
phoneproof_stored_requests{state="finished"} 1
phoneproof_stored_requests{state="pending"} 3
phoneproof_stored_requests{state="undelivered"} 2
`), "phoneproof_stored_requests")).To(Succeed())
	}
	g.Expect(store.asked).To(Equal(1))
	store.err = errors.New("away")
	clock.SetTime(clock.Now().Add(countEvery))
	g.Expect(testutil.GatherAndCount(registry, "phoneproof_stored_requests")).To(BeZero())
	g.Expect(testutil.GatherAndCount(registry, "phoneproof_stored_requests")).To(BeZero())
	g.Expect(store.asked).To(Equal(2), "not with every scrape")
	store.err = nil
	clock.SetTime(clock.Now().Add(retryEvery))
	g.Expect(testutil.GatherAndCount(registry, "phoneproof_stored_requests")).To(Equal(3))
	g.Expect(store.asked).To(Equal(3), "soon again after a count that failed")
	clock.SetTime(clock.Now().Add(countEvery - 1))
	g.Expect(testutil.GatherAndCount(registry, "phoneproof_stored_requests")).To(Equal(3))
	g.Expect(store.asked).To(Equal(3))
}

// TestConversions_countsEachVerificationOnce: a retry of init starts nothing, and a copy of a message verifies nothing.
func TestConversions_countsEachVerificationOnce(t *testing.T) {
	g := NewWithT(t)
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0))
	store := memory.NewBackend(memory.Options{Clock: clock}).Open("shop/acme")
	registry := prometheus.NewRegistry()
	metrics, err := newConversions(registry, store, nil, clock, logr.Discard())
	g.Expect(err).NotTo(HaveOccurred())
	service := verification.NewService(verification.NewCodeSpace("shop/acme"), store)
	service.Observer = metrics
	number, err := phone.Parse("+4915112345678")
	g.Expect(err).NotTo(HaveOccurred())
	in := verification.Initiation{
		Phone: number, Method: verification.WhatsApp, TTL: 10 * time.Minute, IdempotencyKey: "one", HasIdempotencyKey: true,
	}
	begun, err := service.Initiate(t.Context(), in)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = service.Initiate(t.Context(), in)
	g.Expect(err).NotTo(HaveOccurred())
	clock.SetTime(clock.Now().Add(42 * time.Second))
	for range 2 {
		receipt, err := service.Receive(t.Context(), verification.Message{
			Evidence: verification.Evidence{Method: verification.WhatsApp, Sender: number, SentAt: clock.Now()}, Text: begun.Code.Grouped(),
		}, verification.NewEventKinds(verification.EventSuccess))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(receipt.Outcome).To(Equal(verification.OutcomeVerified))
	}
	for _, step := range []verification.SessionStep{verification.SessionProven, verification.SessionWrongCode, verification.SessionWrongCode, "other"} {
		metrics.SessionStep(step)
	}
	// A test key's request counts here and nowhere else.
	in.Phone, in.Test = verification.TestNumbers()[0].Number, true
	tested, err := service.Initiate(t.Context(), in)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = store.Update(t.Context(), tested.Request.ID, func(r *verification.Request, now time.Time) error { return r.Play(now, 0) })
	g.Expect(err).NotTo(HaveOccurred())
	families, err := registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName() + " " + m.GetLabel()[0].GetValue()
			got[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
			if h := m.GetHistogram(); h != nil {
				got[name+" count"], got[name] = float64(h.GetSampleCount()), h.GetSampleSum()
			}
		}
	}
	g.Expect(got).To(Equal(map[string]float64{
		"phoneproof_verifications_started_total WHATSAPP": 1, "phoneproof_verifications_started_total TELEGRAM": 0,
		"phoneproof_verification_duration_seconds WHATSAPP": 42, "phoneproof_verification_duration_seconds WHATSAPP count": 1,
		"phoneproof_verification_duration_seconds TELEGRAM": 0, "phoneproof_verification_duration_seconds TELEGRAM count": 0,
		"phoneproof_stored_requests pending": 0, "phoneproof_stored_requests undelivered": 1, "phoneproof_stored_requests finished": 1,
		"phoneproof_session_proofs_total started": 0, "phoneproof_session_proofs_total proven": 1,
		"phoneproof_session_proofs_total confirmed": 0, "phoneproof_session_proofs_total wrong_code": 2,
		"phoneproof_session_proofs_total tries_used_up": 0, "phoneproof_session_proofs_total declined": 0,
		"phoneproof_session_proofs_total canceled":        0,
		"phoneproof_test_requests_total verified_at_once": 1, "phoneproof_test_requests_total verified_later": 0,
		"phoneproof_test_requests_total expired": 0, "phoneproof_test_requests_total number_hidden": 0,
		"phoneproof_test_requests_total other_number": 0, "phoneproof_test_requests_total declined": 0,
		"phoneproof_test_requests_total code_not_sent": 0, "phoneproof_test_requests_total code_unknown": 0,
		"phoneproof_test_requests_total codes_limited": 0,
	}))
}
