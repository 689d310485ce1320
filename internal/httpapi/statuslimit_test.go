package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/tokenbucket"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// TestStatus_isLimitedForEachKey floods with one key while the clock is stopped.
func TestStatus_isLimitedForEachKey(t *testing.T) {
	g := NewWithT(t)
	clock := clocktesting.NewFakeClock(time.Now().Truncate(time.Second))
	h := newHarness(t, func(s *setup) {
		s.options.Clock = clock
		s.settings.Limits.PerKey = verification.Rate{Requests: 60, Period: time.Hour}
	})
	id := h.do(initFor(keyAll, h.newNumber(1))).stringField("requestId")
	ask := func(key string) answer { return h.do(statusRequest(key, "id="+id)) }
	for range int(minStatusRate * statusBurstTime.Seconds()) {
		g.Expect(ask(keyAll).status).To(Equal(http.StatusOK))
	}
	before := h.store.calls.Load()
	refused := ask(keyAll)
	g.Expect(refused.status).To(Equal(http.StatusTooManyRequests))
	g.Expect(refused.errorField("code")).To(Equal(string(verification.CodeRateLimited)))
	g.Expect(refused.joinedHeader("Retry-After")).To(Equal("1"))
	g.Expect(h.store.calls.Load()).To(Equal(before), "the store must not be called")
	g.Expect(h.do(initFor(keyAll, h.newNumber(2))).status).To(Equal(http.StatusOK), "the key must still start verifications")
	for range 2 {
		signUp := initFor(keyAll, h.newNumber(3)).withHeader("Idempotency-Key", "sign-up")
		g.Expect(h.do(signUp).status).To(Equal(http.StatusOK), "also with an Idempotency-Key, and its retry")
	}
	g.Expect(ask(keyStatus).status).To(Equal(http.StatusOK), "another key must not be limited")

	clock.Step(time.Second)
	for range minStatusRate {
		g.Expect(ask(keyAll).status).To(Equal(http.StatusOK))
	}
	g.Expect(ask(keyAll).status).To(Equal(http.StatusTooManyRequests))
	h.changeSettings(func(s *settings.Settings) { s.Limits.PerKey.Requests *= 20 })
	g.Expect(ask(keyAll).status).To(Equal(http.StatusTooManyRequests))
	clock.Step(time.Second)
	for range 1_200 * statusPerVerification / int(statusTime.Seconds()) {
		g.Expect(ask(keyAll).status).To(Equal(http.StatusOK), "the limit grows with the limit of inits")
	}
}

// TestRetries_areLimitedForEachKey floods with retries of one init while the clock is stopped.
func TestRetries_areLimitedForEachKey(t *testing.T) {
	g := NewWithT(t)
	clock := clocktesting.NewFakeClock(time.Now().Truncate(time.Second))
	h := newHarness(t, func(s *setup) {
		s.options.Clock = clock
		s.settings.Limits.PerKey = verification.Rate{Requests: 200, Period: time.Hour}
	})
	most := int(minStatusRate * statusBurstTime.Seconds())
	for i := range 20 {
		signUp := initFor(keyAll, h.newNumber(i)).withHeader("Idempotency-Key", strconv.Itoa(i))
		g.Expect(h.do(signUp).status).To(Equal(http.StatusOK), "an init that starts a verification is not a retry")
	}
	again := initFor(keyAll, h.newNumber(0)).withHeader("Idempotency-Key", "0")
	for range most {
		g.Expect(h.do(again).status).To(Equal(http.StatusOK))
	}
	before := h.store.calls.Load()
	refused := h.do(again)
	g.Expect(refused.status).To(Equal(http.StatusTooManyRequests))
	g.Expect(refused.errorField("code")).To(Equal(string(verification.CodeRateLimited)))
	g.Expect(refused.joinedHeader("Retry-After")).To(Equal("1"))
	g.Expect(refused.header).NotTo(HaveKey("Ratelimit"), "it is not a limit on inits")
	g.Expect(h.store.calls.Load()).To(Equal(before), "the store must not be called")
	g.Expect(h.do(statusRequest(keyAll, "id=abc")).status).NotTo(Equal(http.StatusTooManyRequests), "reads are counted separately")
	clock.Step(time.Second)
	g.Expect(h.do(again).status).To(Equal(http.StatusOK))
}

// TestStatusLimit_holdsABurstOfClients has 600 clients of one key read every two seconds for a minute.
func TestStatusLimit_holdsABurstOfClients(t *testing.T) {
	g := NewWithT(t)
	byDefault := (&verifyv1.VerificationProjectSpec{}).EffectivePerKey()
	perKey := verification.Rate{Requests: int(byDefault.Requests), Period: byDefault.Period.Or(0)}
	rate, limited := readRate(perKey)
	g.Expect(limited).To(BeTrue())
	var bucket tokenbucket.Bucket
	now := time.Now()
	for range 30 {
		for range 600 {
			g.Expect(bucket.Take(rate, now)).To(BeTrue())
		}
		now = now.Add(2 * time.Second)
	}
	_, limited = readRate(verification.Rate{})
	g.Expect(limited).To(BeFalse(), "where inits are not limited")
}

// TestCalls_nameTheirKeyToTheStore, which bounds what each key looks up in vain.
func TestCalls_nameTheirKeyToTheStore(t *testing.T) {
	w := newSessionWorld(t)
	b := w.beginSession("order-1")
	w.proveNumber(b)
	expect := func(name string, r request) {
		t.Helper()
		refuseOthers := func(ctx context.Context) error {
			if verification.CallerOf(ctx) != verification.Client(name) {
				return errors.New("the store is called for another key")
			}
			return nil
		}
		w.store.before.Store(&refuseOthers)
		w.g.Expect(w.do(r).status).To(Equal(http.StatusOK))
	}
	expect("init", initFor(keyInit, w.number))
	expect("status", statusRequest(keyStatus, "id="+b.id))
	expect("init", confirmFor(b.id, b.digits))
}
