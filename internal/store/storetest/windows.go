package storetest

import (
	"context"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func slidingWindows() []check {
	return []check{
		{name: "slide: what was admitted last still counts when the first leaves", run: timely(windowsSlide)},
		{name: "end to the microsecond one period after an admission", needs: aSteppedClock, run: windowsEnd},
		{name: "say exactly when one more is admitted", needs: aSteppedClock, run: windowsSay},
		{name: "admit one after the wait that they asked for", run: timely(windowsKeepWord)},
		{name: "of all limits ask for the longest wait", run: windowsBoth},
	}
}

// eachRate returns limits with one rate each, of every kind.
func eachRate(n int, period time.Duration) []verification.Limits {
	return []verification.Limits{perKey(n, period), perNumber(n, period), perPrefix(6, n, period), perSubject(n, period)}
}

// limitedBy returns a creation for the same key, number, prefix or subject, by the rate of limits, as those before it, which
// shares nothing with creations for the other rates.
func (t *trial) limitedBy(limits verification.Limits) verification.New {
	switch {
	case limits.PerKey.Limited():
		return t.with("limited", "+4915112345699")
	case limits.PerPhoneNumber.Limited():
		return t.with("another", claimed)
	case limits.PerPrefix.Limited():
		return t.with("another", "+4915212345678")
	default:
		return t.of("limited")
	}
}

// windowsSlide creates at 0, 3 and 3 ticks with a period of 6. A window that starts anew every period, from whenever,
// would admit too many near tick 7.
func windowsSlide(ctx context.Context, t *trial) {
	s := t.open()
	tick := t.harness.Tick
	for _, limits := range eachRate(3, 6*tick) {
		n := func() verification.New { return t.limitedBy(limits) }
		t.admitted(ctx, s, n(), limits)
		t.pass(ctx, 3*tick)
		t.admitted(ctx, s, n(), limits)
		t.admitted(ctx, s, n(), limits)
		t.refused(ctx, s, n(), limits, verification.CodeRateLimited)
		t.pass(ctx, 3*tick+tick/2)
		t.admitted(ctx, s, n(), limits) // the first has left
		t.refused(ctx, s, n(), limits, verification.CodeRateLimited)
	}
}

func windowsEnd(ctx context.Context, t *trial) {
	for _, limits := range eachRate(2, time.Minute) {
		s := t.open() // a store sweeps admissions when it begins, and seldom after that
		n := func() verification.New { return t.limitedBy(limits) }
		t.admitted(ctx, s, n(), limits)
		t.pass(ctx, 20*time.Second)
		t.admitted(ctx, s, n(), limits)
		for _, left := range []time.Duration{40 * time.Second, 20 * time.Second} {
			t.pass(ctx, left-time.Microsecond)
			if sweeper, ok := s.(verification.Sweeper); ok { // it takes no admission that still counts
				_, err := sweeper.Sweep(ctx, verification.Policy{Retention: time.Hour}, 1000)
				t.Expect(err).NotTo(HaveOccurred())
			}
			t.refused(ctx, s, n(), limits, verification.CodeRateLimited)
			t.pass(ctx, time.Microsecond) // an admission one whole period ago is outside (now - period, now]
			t.admitted(ctx, s, n(), limits)
		}
	}
}

func windowsSay(ctx context.Context, t *trial) {
	s := t.open()
	limits := perKey(3, time.Minute)
	for _, gap := range []time.Duration{0, 7 * time.Second, 11 * time.Second} {
		t.pass(ctx, gap)
		t.admitted(ctx, s, t.new(), limits)
	}
	wait := func(l verification.Limits) time.Duration {
		return t.refused(ctx, s, t.new(), l, verification.CodeRateLimited)
	}
	t.Expect(wait(limits)).To(Equal(42 * time.Second))
	t.Expect(wait(perKey(2, time.Minute))).To(Equal(49*time.Second), "two have to leave")
	t.Expect(wait(perKey(1, time.Minute))).To(Equal(60*time.Second), "all have to leave")
	t.pass(ctx, 42*time.Second-time.Microsecond)
	t.Expect(wait(limits)).To(Equal(time.Microsecond))
}

func windowsKeepWord(ctx context.Context, t *trial) {
	s := t.open()
	for _, limits := range eachRate(2, 4*t.harness.Tick) {
		n := func() verification.New { return t.limitedBy(limits) }
		t.admitted(ctx, s, n(), limits)
		t.pass(ctx, t.harness.Tick)
		t.admitted(ctx, s, n(), limits)
		for range 2 {
			t.pass(ctx, t.refused(ctx, s, n(), limits, verification.CodeRateLimited))
			t.admitted(ctx, s, n(), limits)
		}
	}
}

func windowsBoth(ctx context.Context, t *trial) {
	s := t.open()
	for _, swap := range []bool{false, true} {
		limits := verification.Limits{
			PerKey:         verification.Rate{Requests: 1, Period: time.Minute},
			PerPhoneNumber: verification.Rate{Requests: 1, Period: time.Hour},
		}
		n := func() verification.New { return t.with("one", claimed) }
		if swap {
			limits.PerKey, limits.PerPhoneNumber = limits.PerPhoneNumber, limits.PerKey
			n = func() verification.New { return t.with("two", "+4915112345699") }
		}
		t.admitted(ctx, s, n(), limits)
		wait := t.refused(ctx, s, n(), limits, verification.CodeRateLimited)
		t.Expect(wait).To(BeNumerically(">", 50*time.Minute), "waiting for the shorter one would end in another refusal")
	}
	for name, limits := range map[string]verification.Limits{
		verification.LimitPerPrefix:  perPrefix(6, 1, 2*time.Hour),
		verification.LimitPerSubject: perSubject(1, 2*time.Hour),
	} {
		limits.PerKey = verification.Rate{Requests: 1, Period: time.Hour}
		n := func() verification.New {
			n := t.with(name, "+4915312345678")
			n.Subject = name
			return n
		}
		t.admitted(ctx, s, n(), limits)
		t.Expect(t.refused(ctx, s, n(), limits, verification.CodeRateLimited)).To(BeNumerically(">", 110*time.Minute), name)
	}
}
