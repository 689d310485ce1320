package memory

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

var startTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// fixture is a store with a fake clock.
type fixture struct {
	*Store
	*WithT

	t     *testing.T
	clock *clocktesting.FakePassiveClock
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	clock := clocktesting.NewFakePassiveClock(startTime)
	return fixture{Store: NewBackend(Options{Clock: clock}).Open("a/b"), WithT: NewWithT(t), t: t, clock: clock}
}

func (f fixture) advanceClock(d time.Duration) { f.clock.SetTime(f.clock.Now().Add(d)) }

func (f fixture) newCreation(i int) verification.New {
	number, err := phone.FromE164(fmt.Sprintf("+49151%08d", i))
	f.Expect(err).NotTo(HaveOccurred())
	return verification.New{
		ID: fmt.Sprint("id-", i), Phone: number, Method: verification.Telegram, TTL: time.Minute, KeyName: fmt.Sprint("key-", i),
	}
}

func (f fixture) addRequest(i int, limits verification.Limits) verification.Request {
	created, err := f.Create(f.t.Context(), f.newCreation(i), limits)
	f.Expect(err).NotTo(HaveOccurred())
	return created.Request
}

func TestStore_dropsIdleEntries(t *testing.T) {
	const many = 10_000
	f := newFixture(t)
	limits := verification.Limits{
		PerKey:         verification.Rate{Requests: 5, Period: time.Minute},
		PerPhoneNumber: verification.Rate{Requests: 5, Period: 10 * time.Minute},
	}
	for i := range many {
		r := f.addRequest(i, limits)
		r, err := f.Update(t.Context(), r.ID, func(r *verification.Request, now time.Time) error {
			r.Contacts = []verification.Contact{{Binding: "binding of " + r.ID, BoundAt: now}}
			return nil
		})
		f.Expect(err).NotTo(HaveOccurred())
		changes, cancel := f.Subscribe(r.ID)
		f.Expect(changes).NotTo(Receive())
		f.Expect(f.Delete(t.Context(), r.ID, r.Version)).To(Succeed())
		cancel()
	}
	p := f.project
	f.Expect(p.records).To(BeEmpty())
	f.Expect(p.awaiting).To(BeEmpty())
	for _, line := range []timeline{p.work.waiting, p.work.due, p.room.ripening, p.room.evictable} {
		f.Expect(line).To(BeEmpty())
	}
}

func TestStore_survivesAMutationThatPanics(t *testing.T) {
	f := newFixture(t)
	before := f.addRequest(1, verification.Limits{})
	f.Expect(func() {
		_, _ = f.Update(t.Context(), before.ID, func(*verification.Request, time.Time) error { panic("mutation") })
	}).To(PanicWith("mutation"))
	f.Expect(f.Read(t.Context(), before.ID)).To(Equal(before))
}

// Times finer than a microsecond cannot be stored, and must not make a request due and not due at the same time, which would
// loop forever.
func TestStore_handlesTimesBelowItsPrecision(t *testing.T) {
	f := newFixture(t)
	r := f.addRequest(1, verification.Limits{})
	for _, fraction := range []time.Duration{1, 999, 1001} {
		_, err := f.Claim(t.Context(), verification.Policy{Retention: fraction}, 10, fraction)
		f.Expect(err).NotTo(HaveOccurred())
		f.advanceClock(time.Minute + verification.ExpiryGrace)
		f.Expect(f.Claim(t.Context(), verification.Policy{Retention: fraction}, 10, fraction)).To(HaveLen(1))
		f.Expect(f.Claim(t.Context(), verification.Policy{Retention: fraction}, 10, fraction)).To(BeEmpty())
		f.advanceClock(fraction + time.Microsecond)
		f.Expect(f.Claim(t.Context(), verification.Policy{Retention: fraction}, 10, fraction)).To(HaveLen(1))
		f.advanceClock(time.Millisecond)
	}
	n := f.newCreation(2)
	n.TTL = time.Minute + 1
	created, err := f.Create(t.Context(), n, verification.Limits{MaxStored: 1})
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(created.Request.ExpiresAt.Nanosecond() % 1000).To(BeZero())
	f.Expect(f.Read(t.Context(), r.ID)).Error().To(MatchError(verification.ErrNotFound))
}

func TestStore_returnsRetryAfterForRoom(t *testing.T) {
	f := newFixture(t)
	one := verification.Limits{MaxStored: 1}
	r := f.addRequest(1, one)
	expectRetryAfter := func(want time.Duration) {
		_, err := f.Create(t.Context(), f.newCreation(2), one)
		var refusal *verification.Error
		f.Expect(errors.As(err, &refusal)).To(BeTrue())
		f.Expect(refusal.RetryAfter).To(Equal(want))
	}
	expectRetryAfter(time.Minute)
	f.advanceClock(35 * time.Second)
	expectRetryAfter(30 * time.Second)
	f.advanceClock(30*time.Second - time.Microsecond)
	expectRetryAfter(time.Second)
	_, err := f.Update(t.Context(), r.ID, func(r *verification.Request, now time.Time) error {
		r.Phase, r.Delivery.NextAttemptAt = verification.Verified, now
		return nil
	})
	f.Expect(err).NotTo(HaveOccurred())
	expectRetryAfter(time.Minute)
}

func TestStore_admitsAfterTheClockWasSetBack(t *testing.T) {
	f := newFixture(t)
	limits := verification.Limits{PerKey: verification.Rate{Requests: 1, Period: time.Minute}}
	n := f.newCreation(1)
	_, err := f.Create(t.Context(), n, limits)
	f.Expect(err).NotTo(HaveOccurred())
	f.advanceClock(-time.Hour)
	n.ID = "after"
	_, err = f.Create(t.Context(), n, limits)
	f.Expect(err).NotTo(HaveOccurred(), "clients must not be refused for an hour because of our clock")
	n.ID = "again"
	_, err = f.Create(t.Context(), n, limits)
	f.Expect(err).To(HaveOccurred())
}

func TestStore_notifiesOfEviction(t *testing.T) {
	f := newFixture(t)
	r := f.addRequest(1, verification.Limits{})
	changes, cancel := f.Subscribe(r.ID)
	defer cancel()
	f.advanceClock(time.Hour)
	f.addRequest(2, verification.Limits{MaxStored: 1})
	f.Expect(changes).To(Receive())
}

func TestBackend_Fail(t *testing.T) {
	f := newFixture(t)
	f.backend.Fail(errors.New("disk full"))
	f.Expect(f.Ready(t.Context())).To(MatchError(ContainSubstring("disk full")))
	f.backend.Fail(nil)
	f.Expect(f.Ready(t.Context())).To(Succeed())
}

func TestBackend_forgetsLimits(t *testing.T) {
	f := newFixture(t)
	limits := verification.Limits{PerKey: verification.Rate{Requests: 1, Period: time.Hour}}
	f.addRequest(1, limits)
	refused := f.newCreation(2)
	refused.KeyName = "key-1"
	_, err := f.Create(t.Context(), refused, limits)
	f.Expect(err).To(MatchError(ContainSubstring("rate_limited")))
	f.backend.ForgetLimits()
	_, err = f.Create(t.Context(), refused, limits)
	f.Expect(err).NotTo(HaveOccurred())
	_, err = f.Read(t.Context(), "id-1")
	f.Expect(err).NotTo(HaveOccurred(), "requests stay")
}
