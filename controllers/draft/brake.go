package draft

import (
	"sync"
	"time"
)

// contentRecheck is how long a draft rests that the store would not take for its content.
const contentRecheck = 10 * time.Minute

// brake holds back drafts whose completion was refused for their content. Completing writes a label first, which is a
// change that brings the draft here again at once: without the brake it would go round for ever. The zero value is ready.
type brake struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// pull holds the draft back from now on.
func (b *brake) pull(name string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.until == nil {
		b.until = make(map[string]time.Time)
	}
	b.until[name] = now.Add(contentRecheck)
}

// rest returns how long the draft is still held back, and forgets it once that is over.
func (b *brake) rest(name string, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	until, held := b.until[name]
	if held && now.Before(until) {
		return until.Sub(now)
	}
	delete(b.until, name)
	return 0
}
