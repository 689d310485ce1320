package storetest

import (
	"context"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func windowChecks() []check {
	return []check{
		{name: "slide: later admissions still count when the first leaves", run: repeatIfSlow(windowsSlide)},
		{name: "end to the microsecond one period after an admission", needs: SteppedClock, run: windowsEnd},
		{name: "return exactly when one more is admitted", needs: SteppedClock, run: windowsRetryAfter},
		{name: "admit one more after the returned wait", run: repeatIfSlow(windowsAdmitAfterWait)},
		{name: "return the longest wait of all limits", run: windowsLongestWait},
	}
}

// eachRate returns one Limits for every kind of rate.
func eachRate(n int, period time.Duration) []verification.Limits {
	return []verification.Limits{perKey(n, period), perNumber(n, period), perPrefix(6, n, period), perSubject(n, period)}
}

// limitedBy returns a creation for the same key, number, prefix or subject, by the rate in limits, as its other calls. It shares
// nothing with creations for other rates.
func (t *trial) limitedBy(limits verification.Limits) verification.New {
	switch {
	case limits.PerKey.Limited():
		return t.newForKey("limited", "+4915112345699")
	case limits.PerPhoneNumber.Limited():
		return t.newForKey("another", claimedNumber)
	case limits.PerPrefix.Limited():
		return t.newForKey("another", "+4915212345678")
	default:
		return t.newForSubject("limited")
	}
}

// windowsSlide creates at 0, 3 and 3 ticks with a period of 6. A fixed window of any start would admit too many near tick 7.
func windowsSlide(ctx context.Context, t *trial) {
	s := t.openReplica()
	tick := t.harness.Tick
	for _, limits := range eachRate(3, 6*tick) {
		n := func() verification.New { return t.limitedBy(limits) }
		t.expectAdmitted(ctx, s, n(), limits)
		t.passTime(ctx, 3*tick)
		t.expectAdmitted(ctx, s, n(), limits)
		t.expectAdmitted(ctx, s, n(), limits)
		t.expectRefused(ctx, s, n(), limits, verification.CodeRateLimited)
		t.passTime(ctx, 3*tick+tick/2)
		t.expectAdmitted(ctx, s, n(), limits) // the first has left
		t.expectRefused(ctx, s, n(), limits, verification.CodeRateLimited)
	}
}

func windowsEnd(ctx context.Context, t *trial) {
	for _, limits := range eachRate(2, time.Minute) {
		s := t.openReplica() // a store sweeps admissions after its start, and rarely after that
		n := func() verification.New { return t.limitedBy(limits) }
		t.expectAdmitted(ctx, s, n(), limits)
		t.passTime(ctx, 20*time.Second)
		t.expectAdmitted(ctx, s, n(), limits)
		for _, left := range []time.Duration{40 * time.Second, 20 * time.Second} {
			t.passTime(ctx, left-time.Microsecond)
			if queue, ok := s.(verification.Queue); ok { // it must not delete an admission that still counts
				_, err := queue.Sweep(ctx, verification.Policy{Retention: time.Hour}, 1000)
				t.Expect(err).NotTo(HaveOccurred())
			}
			t.expectRefused(ctx, s, n(), limits, verification.CodeRateLimited)
			t.passTime(ctx, time.Microsecond) // an admission exactly one period ago is outside (now - period, now]
			t.expectAdmitted(ctx, s, n(), limits)
		}
	}
}

func windowsRetryAfter(ctx context.Context, t *trial) {
	s := t.openReplica()
	limits := perKey(3, time.Minute)
	for _, gap := range []time.Duration{0, 7 * time.Second, 11 * time.Second} {
		t.passTime(ctx, gap)
		t.expectAdmitted(ctx, s, t.newCreation(), limits)
	}
	wait := func(l verification.Limits) time.Duration {
		return t.expectRefused(ctx, s, t.newCreation(), l, verification.CodeRateLimited)
	}
	t.Expect(wait(limits)).To(Equal(42 * time.Second))
	t.Expect(wait(perKey(2, time.Minute))).To(Equal(49*time.Second), "two must leave")
	t.Expect(wait(perKey(1, time.Minute))).To(Equal(60*time.Second), "all must leave")
	t.passTime(ctx, 42*time.Second-time.Microsecond)
	t.Expect(wait(limits)).To(Equal(time.Microsecond))
}

func windowsAdmitAfterWait(ctx context.Context, t *trial) {
	s := t.openReplica()
	for _, limits := range eachRate(2, 4*t.harness.Tick) {
		n := func() verification.New { return t.limitedBy(limits) }
		t.expectAdmitted(ctx, s, n(), limits)
		t.passTime(ctx, t.harness.Tick)
		t.expectAdmitted(ctx, s, n(), limits)
		for range 2 {
			t.passTime(ctx, t.expectRefused(ctx, s, n(), limits, verification.CodeRateLimited))
			t.expectAdmitted(ctx, s, n(), limits)
		}
	}
}

func windowsLongestWait(ctx context.Context, t *trial) {
	s := t.openReplica()
	for _, swap := range []bool{false, true} {
		limits := verification.Limits{
			PerKey:         verification.Rate{Requests: 1, Period: time.Minute},
			PerPhoneNumber: verification.Rate{Requests: 1, Period: time.Hour},
		}
		n := func() verification.New { return t.newForKey("one", claimedNumber) }
		if swap {
			limits.PerKey, limits.PerPhoneNumber = limits.PerPhoneNumber, limits.PerKey
			n = func() verification.New { return t.newForKey("two", "+4915112345699") }
		}
		t.expectAdmitted(ctx, s, n(), limits)
		wait := t.expectRefused(ctx, s, n(), limits, verification.CodeRateLimited)
		t.Expect(wait).To(BeNumerically(">", 50*time.Minute), "after the shorter wait the creation would be refused again")
	}
	for name, limits := range map[string]verification.Limits{
		verification.LimitPerPrefix:  perPrefix(6, 1, 2*time.Hour),
		verification.LimitPerSubject: perSubject(1, 2*time.Hour),
	} {
		limits.PerKey = verification.Rate{Requests: 1, Period: time.Hour}
		n := func() verification.New {
			n := t.newForKey(name, "+4915312345678")
			n.Subject = name
			return n
		}
		t.expectAdmitted(ctx, s, n(), limits)
		t.Expect(t.expectRefused(ctx, s, n(), limits, verification.CodeRateLimited)).To(BeNumerically(">", 110*time.Minute), name)
	}
}
