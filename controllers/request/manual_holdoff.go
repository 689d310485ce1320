package request

import (
	"sync"
	"time"
)

const (
	// contentRecheck is how long a manual request is held back after the store refused its content.
	contentRecheck = 10 * time.Minute
	// failureRecheck is how long it is held back after its completion failed half-way.
	failureRecheck = 15 * time.Second
)

// holdOff holds back manual requests whose completion failed. Completing writes a label first, and that change requeues the
// request at once, past every backoff: without the hold-off it would loop for ever. The zero value is ready.
type holdOff struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// hold holds the request back for the duration rest.
func (b *holdOff) hold(name string, now time.Time, rest time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.until == nil {
		b.until = make(map[string]time.Time)
	}
	b.until[name] = now.Add(rest)
}

// remaining returns how long the request is still held back, and forgets it when that is over.
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
