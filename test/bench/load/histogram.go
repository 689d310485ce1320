package load

import (
	"math/bits"
	"time"
)

// subBuckets is the number of buckets per power of two: no bucket is wider than 1/128 of its values.
const (
	subBits    = 7
	subBuckets = 1 << subBits
	buckets    = (64-subBits)*subBuckets + subBuckets
)

// Histogram counts durations in buckets whose width grows with their values, so that quantiles from nanoseconds to
// years are right to 0.8 percent. The zero value is empty. It is for one goroutine; Add joins histograms.
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
	h.counts[bucketIndex(uint64(d))]++
	h.n++
	h.sum += d
	h.most = max(h.most, d)
}

// Add adds all durations that other counted.
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

// Count returns the number of recorded durations.
func (h *Histogram) Count() int64 { return h.n }

// Max returns the longest duration; zero if there is none.
func (h *Histogram) Max() time.Duration { return h.most }

// Mean returns the average; zero if there is none.
func (h *Histogram) Mean() time.Duration {
	if h.n == 0 {
		return 0
	}
	return h.sum / time.Duration(h.n)
}

// Quantile returns the duration that the given share of durations does not exceed, such as 0.99; zero if there are
// none.
func (h *Histogram) Quantile(share float64) time.Duration {
	rank := int64(share * float64(h.n))
	if float64(rank) < share*float64(h.n) {
		rank++ // the smallest number of durations that is at least that share
	}
	rank = max(rank, 1)
	var seen int64
	for i, n := range h.counts {
		if seen += n; seen >= rank {
			return min(time.Duration(bucketMax(i)), h.most)
		}
	}
	return h.most
}

// bucketIndex returns the index for a value: values below 2*subBuckets have a bucket each, and each power of two above
// has subBuckets.
func bucketIndex(v uint64) int {
	shift := max(bits.Len64(v)-subBits-1, 0)
	return shift<<subBits + int(v>>shift)
}

// bucketMax returns the largest value in a bucket.
func bucketMax(i int) uint64 {
	shift := max(i>>subBits-1, 0)
	return (uint64(i-shift<<subBits)+1)<<shift - 1
}
