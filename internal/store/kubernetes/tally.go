package kubernetes

import (
	"cmp"
	"slices"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

const (
	// sweepEvery is how many additions pass between two sweeps of a tally, so that sweeping costs nothing on average.
	sweepEvery = 1024
	// longestPeriod is what no limit's period exceeds.
	longestPeriod = 24 * time.Hour
)

// tally counts creations by key in sliding windows. Each creation counts once, however often it is told of, and
// whether or not its object still exists.
type tally[K comparable] struct {
	byKey map[K][]stamp
	added int
	kept  time.Duration
}

// stamp is one creation, in microseconds.
type stamp struct {
	at int64
	id string
}

func (s stamp) compare(other stamp) int {
	return cmp.Or(cmp.Compare(s.at, other.at), cmp.Compare(s.id, other.id))
}

func newTally[K comparable]() tally[K] {
	return tally[K]{byKey: make(map[K][]stamp), kept: longestPeriod}
}

// add counts a creation.
func (t *tally[K]) add(key K, id string, at int64) {
	stamps := t.byKey[key]
	i, known := slices.BinarySearchFunc(stamps, stamp{at, id}, stamp.compare)
	if !known {
		t.byKey[key] = slices.Insert(stamps, i, stamp{at, id})
		t.added++
	}
}

// keysByID returns the key of each creation.
func (t *tally[K]) keysByID() map[string]K {
	keys := make(map[string]K)
	for key, stamps := range t.byKey {
		for _, s := range stamps {
			keys[s.id] = key
		}
	}
	return keys
}

// remove uncounts one.
func (t *tally[K]) remove(key K, id string, at int64) {
	stamps := t.byKey[key]
	if i, known := slices.BinarySearchFunc(stamps, stamp{at, id}, stamp.compare); known {
		t.byKey[key] = slices.Delete(stamps, i, i+1)
	}
}

// within returns the creations in (now - period, now]. Another replica's clock may be a little ahead of ours, so what it
// created after now counts as well.
func (t *tally[K]) within(key K, period time.Duration, now time.Time) []stamp {
	stamps := t.byKey[key]
	begin := now.Add(-period).UnixMicro()
	first, _ := slices.BinarySearchFunc(stamps, begin+1, func(s stamp, at int64) int { return cmp.Compare(s.at, at) })
	return stamps[first:]
}

// wait returns how long it is until the rate admits one more, zero if it does at once.
func (t *tally[K]) wait(key K, rate verification.Rate, now time.Time) time.Duration {
	if !rate.Limited() {
		return 0
	}
	stamps := t.within(key, rate.Period, now)
	if len(stamps) < rate.Requests {
		return 0
	}
	return untilLeft(stamps[len(stamps)-rate.Requests], rate.Period, now)
}

// quota returns what is left of a rate.
func (t *tally[K]) quota(key K, rate verification.Rate, now time.Time) verification.Quota {
	if !rate.Limited() {
		return verification.Quota{}
	}
	stamps := t.within(key, rate.Period, now)
	if len(stamps) == 0 {
		return verification.Quota{Remaining: rate.Requests}
	}
	return verification.Quota{
		Remaining: max(0, rate.Requests-len(stamps)),
		Reset:     untilLeft(stamps[max(0, len(stamps)-rate.Requests)], rate.Period, now),
	}
}

// untilLeft is how long a creation still counts.
func untilLeft(s stamp, period time.Duration, now time.Time) time.Duration {
	return time.UnixMicro(s.at).Add(period).Sub(now)
}

// setPeriod sets how long the window is. More than that is kept, so that a period which is raised a little finds what it asks
// for; all that any could ask for until one is known.
func (t *tally[K]) setPeriod(period time.Duration) { t.kept = max(2*period, time.Hour) }

// sweep drops, once in a while, what has left the window for good.
func (t *tally[K]) sweep(now time.Time) {
	if t.added < sweepEvery {
		return
	}
	t.added = 0
	for key := range t.byKey {
		if kept := t.within(key, t.kept, now); len(kept) == 0 {
			delete(t.byKey, key)
		} else {
			t.byKey[key] = slices.Clone(kept)
		}
	}
}
