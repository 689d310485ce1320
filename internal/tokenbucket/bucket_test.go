package tokenbucket_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/tokenbucket"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// countTaken takes tokens until there are none.
func countTaken(b *tokenbucket.Bucket, r tokenbucket.Rate, now time.Time) (taken int) {
	for b.Take(r, now) {
		taken++
	}
	return taken
}

// TestBucket_countsTimeOnce has calls arrive in another order than they read the clock.
func TestBucket_countsTimeOnce(t *testing.T) {
	g := NewWithT(t)
	rate := tokenbucket.Rate{PerSecond: 1, Burst: 10}
	var b tokenbucket.Bucket
	g.Expect(countTaken(&b, rate, noon)).To(Equal(10), "the zero value is full")
	taken := 0
	for range 20 {
		for _, now := range []time.Time{noon.Add(2 * time.Second), noon} {
			if b.Take(rate, now) {
				taken++
			}
		}
	}
	g.Expect(taken).To(Equal(2), "two seconds have passed")
}

// TestBucket_goesOnWhenTheClockIsSetBack: the agreed clock jumps, in either direction.
func TestBucket_goesOnWhenTheClockIsSetBack(t *testing.T) {
	g := NewWithT(t)
	rate := tokenbucket.Rate{PerSecond: 1, Burst: 10}
	var b tokenbucket.Bucket
	g.Expect(countTaken(&b, rate, noon.Add(time.Hour))).To(Equal(10))
	g.Expect(countTaken(&b, rate, noon)).To(BeZero(), "what is set back gives nothing")
	g.Expect(countTaken(&b, rate, noon.Add(3*time.Second))).To(Equal(3), "time passes from there on")
}

func TestBucket_holdsItsBurstAtMost(t *testing.T) {
	g := NewWithT(t)
	rate := tokenbucket.Rate{PerSecond: 2, Burst: 3}
	var b tokenbucket.Bucket
	g.Expect(b.Tokens(rate, noon)).To(Equal(3.0))
	b.Return(rate)
	g.Expect(b.Tokens(rate, noon.Add(time.Hour))).To(Equal(3.0))
	g.Expect(b.Tokens(tokenbucket.Rate{PerSecond: 2, Burst: 1}, noon.Add(time.Hour))).To(Equal(1.0), "the rate was lowered")
}

// TestBucket_losesNothingByRounding has a token come in parts, as many as there are calls.
func TestBucket_losesNothingByRounding(t *testing.T) {
	g := NewWithT(t)
	day := tokenbucket.Rate{PerSecond: 1.0 / (24 * 60 * 60), Burst: 1}
	var b tokenbucket.Bucket
	g.Expect(b.Take(day, noon)).To(BeTrue())
	for i := range 24 * 60 * 60 {
		g.Expect(b.Take(day, noon.Add(time.Duration(i)*time.Second))).To(BeFalse())
	}
	g.Expect(b.Take(day, noon.Add(24*time.Hour))).To(BeTrue())
}

func TestBucket_waitsForAToken(t *testing.T) {
	g := NewWithT(t)
	rate := tokenbucket.Rate{PerSecond: 2, Burst: 1}
	var b tokenbucket.Bucket
	g.Expect(b.Wait(rate, noon)).To(BeZero())
	b.Charge(rate, noon)
	g.Expect(b.Wait(rate, noon)).To(Equal(500 * time.Millisecond))
	b.Charge(rate, noon)
	g.Expect(b.Tokens(rate, noon)).To(Equal(-1.0), "a token that is to come")
	g.Expect(b.Wait(rate, noon)).To(Equal(time.Second))
	g.Expect(b.Take(rate, noon.Add(999*time.Millisecond))).To(BeFalse())
	g.Expect(b.Take(rate, noon.Add(time.Second))).To(BeTrue())
	b.Return(rate)
	g.Expect(b.Take(rate, noon)).To(BeTrue(), "an earlier time takes nothing away")
}
