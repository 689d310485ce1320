package webhook

import (
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func fixedJitter(share float64) func() float64 { return func() float64 { return share } }

func TestNextAttempt_followsTheSchedule(t *testing.T) {
	g := NewWithT(t)
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	want := []time.Duration{
		0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour,
		14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
	}
	g.Expect(want).To(HaveLen(MaxAttempts))
	for made, wait := range want {
		g.Expect(NextAttempt(made, now, 0, fixedJitter(0))).To(Equal(now.Add(wait)))
		g.Expect(NextAttempt(made, now, 0, fixedJitter(0.5))).To(Equal(now.Add(wait + wait/10)))
	}
	g.Expect(NextAttempt(MaxAttempts, now, 0, fixedJitter(0))).To(BeZero(), "exhausted")
	g.Expect(NextAttempt(MaxAttempts+1, now, time.Hour, fixedJitter(0))).To(BeZero())
	g.Expect(NextAttempt(-1, now, 0, fixedJitter(0))).To(Equal(now), "an invalid count is treated as zero")
}

func TestNextAttempt_clampsRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		made        int
		asked, want time.Duration
	}{
		"never earlier":                   {3, time.Second, 30 * time.Minute},
		"no Retry-After":                  {3, 0, 30 * time.Minute},
		"negative":                        {3, -time.Hour, 30 * time.Minute},
		"honoured":                        {3, 40 * time.Minute, 40 * time.Minute},
		"at most twice":                   {3, 86400 * time.Second, time.Hour},
		"a rate limiter's minute at once": {1, time.Minute, time.Minute},
		"but no more than that":           {1, 10 * time.Minute, time.Minute},
		"never at the first attempt":      {0, time.Hour, 0},
		"the last wait":                   {9, maxRetryAfter, 48 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(NextAttempt(c.made, now, c.asked, fixedJitter(0)).Sub(now)).To(Equal(c.want))
		})
	}
}

func TestNextAttempt_staysWithinBounds(t *testing.T) {
	g := NewWithT(t)
	random := rand.New(rand.NewPCG(1, 2))
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for range 20_000 {
		made := random.IntN(MaxAttempts)
		asked := time.Duration(random.Int64N(int64(72*time.Hour))) - time.Hour
		base, wait := schedule[made], NextAttempt(made, now, asked, random.Float64).Sub(now)
		most := max(2*base, usualRateLimit) + base/5
		if base == 0 {
			most = 0
		}
		if wait < base || wait > most || base > 0 && wait < min(asked, 2*base) {
			g.Expect(wait).To(BeNumerically("~", base, most), "attempts made %d, asked %s", made, asked)
		}
		// Monotone: neither a longer Retry-After nor more attempts lead to an earlier time.
		g.Expect(NextAttempt(made, now, asked+time.Minute, fixedJitter(.5))).
			NotTo(BeTemporally("<", NextAttempt(made, now, asked, fixedJitter(.5))))
		if made > 0 {
			g.Expect(NextAttempt(made-1, now, asked, fixedJitter(.99))).NotTo(BeTemporally(">", NextAttempt(made, now, asked, fixedJitter(0.99))))
		}
	}
}
