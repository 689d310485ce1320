// Package tokenbucket limits how often something happens. A bucket gains tokens with time until it is full, and each
// event takes one.
//
// The same time counts once, in whatever order calls arrive: callers read the clock before they hold the lock over a
// bucket, so an earlier time may come after a later one. golang.org/x/time/rate sets its own time back then, and counts
// what lies between twice.
package tokenbucket

import "time"

// maxDisorder is how much earlier a time may come than one that was counted. What is earlier still comes from a clock that was
// set back, and time passes from there on.
const maxDisorder = 5 * time.Second

// almostOne counts as a token: the parts that time brought are rounded when they are added.
const almostOne = 1 - 1e-9

// Rate is how many tokens a bucket gains in a second, and how many it holds when it is full.
type Rate struct{ PerSecond, Burst float64 }

// Bucket holds tokens. Its zero value is full. It is not safe for concurrent use, and its rate may differ from call to call.
type Bucket struct {
	tokens float64
	// at is the latest time that was counted.
	at time.Time
}

// Tokens returns how many tokens there are at now. They are less than zero while Charge has taken some that are to come.
func (b *Bucket) Tokens(r Rate, now time.Time) float64 {
	switch passed := now.Sub(b.at); {
	case passed > 0:
		b.tokens += passed.Seconds() * r.PerSecond
		b.at = now
	case passed < -maxDisorder:
		b.at = now
	}
	b.tokens = min(b.tokens, r.Burst)
	return b.tokens
}

// Has reports whether there is a token at now.
func (b *Bucket) Has(r Rate, now time.Time) bool { return b.Tokens(r, now) >= almostOne }

// Take takes a token at now and reports whether there was one.
func (b *Bucket) Take(r Rate, now time.Time) bool {
	if !b.Has(r, now) {
		return false
	}
	b.tokens--
	return true
}

// Charge takes a token at now, if need be one of those to come.
func (b *Bucket) Charge(r Rate, now time.Time) { b.tokens = b.Tokens(r, now) - 1 }

// Return gives back a token that was taken.
func (b *Bucket) Return(r Rate) { b.tokens = min(b.tokens+1, r.Burst) }

// Wait returns how long after now there is a token; zero if there is one at now.
func (b *Bucket) Wait(r Rate, now time.Time) time.Duration {
	return time.Duration(max(0, 1-b.Tokens(r, now)) / r.PerSecond * float64(time.Second))
}
