package load

import (
	"math/bits"
	"time"
)

// subBuckets is how many buckets a doubling has: none is wider than 1/128 of what it holds.
const (
	subBits    = 7
	subBuckets = 1 << subBits
	buckets    = (64-subBits)*subBuckets + subBuckets
)

// Histogram counts durations in buckets whose width grows with what they hold, so that quantiles are right to 0.8 percent
// from nanoseconds to years. The zero value is empty. It is for one goroutine; each has its own, and Add joins them.
type Histogram struct {
	counts []int64
	n      int64
	sum    time.Duration
	most   time.Duration
}

// Record counts a duration; a negative one counts as zero.
func (h *Histogram) Record(d time.Duration) {
	if h.counts == nil {
		h.counts = make([]int64, buckets)
	}
	d = max(d, 0)
	h.counts[bucket(uint64(d))]++
	h.n++
	h.sum += d
	h.most = max(h.most, d)
}

// Add counts everything that other counted.
func (h *Histogram) Add(other *Histogram) {
	if other.n == 0 {
		return
	}
	if h.counts == nil {
		h.counts = make([]int64, buckets)
	}
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.n += other.n
	h.sum += other.sum
	h.most = max(h.most, other.most)
}

// Count is how many durations were recorded.
func (h *Histogram) Count() int64 { return h.n }

// Max is the longest; zero if there is none.
func (h *Histogram) Max() time.Duration { return h.most }

// Mean is the average; zero if there is none.
func (h *Histogram) Mean() time.Duration {
	if h.n == 0 {
		return 0
	}
	return h.sum / time.Duration(h.n)
}

// Quantile is what that share of the durations does not exceed, such as 0.99; zero if there are none.
func (h *Histogram) Quantile(share float64) time.Duration {
	rank := int64(share * float64(h.n))
	if float64(rank) < share*float64(h.n) {
		rank++ // the smallest number of durations that is at least that share
	}
	rank = max(rank, 1)
	var seen int64
	for i, n := range h.counts {
		if seen += n; seen >= rank {
			return min(time.Duration(highest(i)), h.most)
		}
	}
	return h.most
}

// bucket is the index for a value: the values below 2*subBuckets have one each, and each doubling after that has
// subBuckets.
func bucket(v uint64) int {
	shift := max(bits.Len64(v)-subBits-1, 0)
	return shift<<subBits + int(v>>shift)
}

// highest is the largest value in a bucket.
func highest(i int) uint64 {
	shift := max(i>>subBits-1, 0)
	return (uint64(i-shift<<subBits)+1)<<shift - 1
}
