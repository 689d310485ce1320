package tokenbucket_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/tokenbucket"
)

// each is two tokens for a key, and one more in a second.
var each = tokenbucket.Rate{PerSecond: 1, Burst: 2}

func TestLimiter_limitsEachKey(t *testing.T) {
	g := NewWithT(t)
	l := tokenbucket.NewLimiter[string](10)
	g.Expect(l.Tokens("one", each, noon)).To(Equal(2.0), "of a key that is not known")
	g.Expect(l.Take("one", each, noon)).To(BeTrue())
	l.Charge("one", each, noon)
	g.Expect(l.Take("one", each, noon)).To(BeFalse())
	g.Expect(l.Take("other", each, noon)).To(BeTrue(), "keys do not share a bucket")
	l.Charge("one", each, noon)
	g.Expect(l.Tokens("one", each, noon)).To(Equal(-1.0))
	g.Expect(l.Take("one", each, noon.Add(time.Second))).To(BeFalse(), "what was charged is owed")
	l.Return("one", each)
	g.Expect(l.Take("one", each, noon.Add(time.Second))).To(BeTrue())
	g.Expect(l.Take("one", tokenbucket.Rate{PerSecond: 3, Burst: 3}, noon.Add(2*time.Second))).To(BeTrue(), "the rate may change")
	g.Expect(l.Tokens("one", each, noon.Add(time.Hour))).To(Equal(2.0))
}

// TestLimiter_countsTimeOnce has calls arrive in another order than they read the clock.
func TestLimiter_countsTimeOnce(t *testing.T) {
	g := NewWithT(t)
	rate := tokenbucket.Rate{PerSecond: 100, Burst: 500}
	l := tokenbucket.NewLimiter[string](1)
	taken := 0
	take := func(at time.Time) bool {
		if !l.Has("one", rate, at) {
			return false
		}
		l.Charge("one", rate, at)
		taken++
		return true
	}
	for take(noon) {
	}
	for range 1000 {
		take(noon.Add(time.Second))
		take(noon)
	}
	g.Expect(taken).To(Equal(600), "only one second has passed")
}

func TestLimiter_takesOfBothOrNeither(t *testing.T) {
	g := NewWithT(t)
	all := tokenbucket.Rate{PerSecond: 1, Burst: 3}
	l := tokenbucket.NewLimiter[string](10)
	take := func(key string) tokenbucket.Bound { return l.TakeBoth(key, each, all, noon) }
	g.Expect(take("one")).To(Equal(tokenbucket.BoundOfNone))
	g.Expect(take("one")).To(Equal(tokenbucket.BoundOfNone))
	g.Expect(take("one")).To(Equal(tokenbucket.BoundOfKey), "which leaves the last one to others")
	g.Expect(take("other")).To(Equal(tokenbucket.BoundOfNone))
	g.Expect(take("other")).To(Equal(tokenbucket.BoundOfAll))
	g.Expect(l.Tokens("other", each, noon)).To(Equal(1.0), "its own was not taken for that")
	l.ReturnBoth("one", each, all)
	g.Expect(take("one")).To(Equal(tokenbucket.BoundOfNone))
	g.Expect(take("other")).To(Equal(tokenbucket.BoundOfAll))
	g.Expect(take("third")).To(Equal(tokenbucket.BoundOfAll))
	g.Expect(l.Len()).To(Equal(2), "who got nothing takes no place")
}

// TestLimiter_isBounded has a stranger make up keys without end: the memory stays small, what all share stays used up, and a key in use
// is not forgotten.
func TestLimiter_isBounded(t *testing.T) {
	g := NewWithT(t)
	const keys = 100
	all := tokenbucket.Rate{PerSecond: 1, Burst: 50}
	l := tokenbucket.NewLimiter[int](keys)
	g.Expect(l.Take(-1, each, noon)).To(BeTrue())
	g.Expect(l.Take(-1, each, noon)).To(BeTrue())
	taken := 0
	for i := range 100 * keys {
		if l.TakeBoth(i, each, all, noon) == tokenbucket.BoundOfNone {
			taken++
		}
		if i%(keys/2) == 0 {
			g.Expect(l.Take(-1, each, noon)).To(BeFalse(), "used all the time")
		}
		g.Expect(l.Len()).To(BeNumerically("<=", keys))
	}
	g.Expect(taken).To(Equal(50))
	for i := range keys {
		l.Charge(i, each, noon)
	}
	g.Expect(l.Take(-1, each, noon)).To(BeTrue(), "unused for longest, so it is forgotten")
	g.Expect(l.Len()).To(Equal(keys))
}

func TestLimiter_isSafeForConcurrentUse(t *testing.T) {
	g := NewWithT(t)
	rate := tokenbucket.Rate{PerSecond: 1, Burst: 1000}
	l := tokenbucket.NewLimiter[int](2)
	var taken atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 1000 {
				if l.TakeBoth(i%2, rate, rate, noon) == tokenbucket.BoundOfNone {
					taken.Add(1)
				}
			}
		})
	}
	all.Wait()
	g.Expect(taken.Load()).To(BeEquivalentTo(1000))
}
