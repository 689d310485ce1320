package request

import (
	"sync"
	"time"
)

const (
	// contentRecheck is how long a draft rests that the store would not take for its content.
	contentRecheck = 10 * time.Minute
	// failureRecheck is how long one rests whose completion failed half-way.
	failureRecheck = 15 * time.Second
)

// holdOff holds back drafts whose completion failed. Completing writes a label first, which is a change that brings the
// draft here again at once, past every backoff: without the brake it would go round for ever. The zero value is ready.
type holdOff struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// hold holds the draft back for so long from now on.
func (b *holdOff) hold(name string, now time.Time, rest time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.until == nil {
		b.until = make(map[string]time.Time)
	}
	b.until[name] = now.Add(rest)
}

// remaining returns how long the draft is still held back, and forgets it once that is over.
func (b *holdOff) remaining(name string, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	until, held := b.until[name]
	if held && now.Before(until) {
		return until.Sub(now)
	}
	delete(b.until, name)
	return 0
}
