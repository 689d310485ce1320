package tokenbucket

import (
	"sync"
	"time"

	"k8s.io/utils/lru"
)

// Limiter limits how often something happens for each of many keys, and to all of them together. Strangers choose keys, so it
// remembers a number of them only: the one unused for longest is forgotten, and its bucket is full when it comes again.
// It is safe for concurrent use.
type Limiter[K comparable] struct {
	mu    sync.Mutex // over a look and a change together
	all   Bucket
	byKey *lru.Cache // of *Bucket
}

// NewLimiter returns a limiter that remembers that many keys.
func NewLimiter[K comparable](keys int) *Limiter[K] { return &Limiter[K]{byKey: lru.New(keys)} }

// Bound is one that an event exceeds.
type Bound int

// The bounds.
const (
	BoundOfNone Bound = iota
	BoundOfKey
	BoundOfAll
)

// Take takes a token of the key at now and reports whether there was one.
func (l *Limiter[K]) Take(key K, each Rate, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bucketOf(key).Take(each, now)
}

// TakeBoth takes a token of the key and one of all at now, or neither, and returns the bound that is in the way. A key that is refused
// is not remembered, so that it takes no place of one that was not.
func (l *Limiter[K]) TakeBoth(key K, each, all Rate, now time.Time) Bound {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.findBucket(key)
	switch {
	case own != nil && !own.Has(each, now):
		return BoundOfKey
	case !l.all.Take(all, now):
		return BoundOfAll
	default:
		l.bucketOf(key).Take(each, now)
		return BoundOfNone
	}
}

// Has reports whether the key has a token at now.
func (l *Limiter[K]) Has(key K, each Rate, now time.Time) bool {
	return l.Tokens(key, each, now) >= almostOne
}

// Tokens returns how many tokens the key has at now.
func (l *Limiter[K]) Tokens(key K, each Rate, now time.Time) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if own := l.findBucket(key); own != nil {
		return own.Tokens(each, now)
	}
	return each.Burst
}

// Charge takes a token of the key at now, if need be one of those to come.
func (l *Limiter[K]) Charge(key K, each Rate, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bucketOf(key).Charge(each, now)
}

// Return gives back a token that was taken of the key.
func (l *Limiter[K]) Return(key K, each Rate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bucketOf(key).Return(each)
}

// ReturnBoth gives back the tokens that TakeBoth took.
func (l *Limiter[K]) ReturnBoth(key K, each, all Rate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bucketOf(key).Return(each)
	l.all.Return(all)
}

// Len returns how many keys are remembered.
func (l *Limiter[K]) Len() int { return l.byKey.Len() }

// findBucket returns the bucket of a key; nil if it is not remembered.
func (l *Limiter[K]) findBucket(key K) *Bucket {
	own, _ := l.byKey.Get(key)
	bucket, _ := own.(*Bucket)
	return bucket
}

// bucketOf returns the bucket of a key, which is remembered from then on.
func (l *Limiter[K]) bucketOf(key K) *Bucket {
	own := l.findBucket(key)
	if own == nil {
		own = &Bucket{}
		l.byKey.Add(key, own)
	}
	return own
}
