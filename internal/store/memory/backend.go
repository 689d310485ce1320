package memory

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// Options configure a Backend. The zero value is ready for use.
type Options struct {
	// Clock is the clock of every store of the backend; the real one if nil.
	Clock clock.PassiveClock
}

// Backend takes the place of a database: it holds the state that all its stores share. It is safe for concurrent use.
type Backend struct {
	clock   clock.PassiveClock
	outage  atomic.Pointer[error]
	mu      sync.Mutex
	project map[string]*project
}

// NewBackend returns an empty backend.
func NewBackend(o Options) *Backend {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Backend{clock: o.Clock, project: make(map[string]*project)}
}

// Open returns a store of the project with that "namespace/name". Stores of one project share its requests, as
// replicas do. Projects are never removed, because a process serves only the few that it is configured for.
func (b *Backend) Open(name string) *Store {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.project[name]
	if p == nil {
		p = newProject()
		b.project[name] = p
	}
	return &Store{backend: b, project: p}
}

// ForgetLimits has the limits on creations begin anew in every project: what was admitted no longer counts, nor does a cool-down of a
// request that is stored. Full stores stay full.
func (b *Backend) ForgetLimits() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.project {
		p.mu.Lock()
		p.admitted.Forget()
		p.mu.Unlock()
	}
}

// Fail simulates an outage: every store returns Unavailable with err, until Fail(nil).
func (b *Backend) Fail(err error) {
	if err == nil {
		b.outage.Store(nil)
		return
	}
	b.outage.Store(&err)
}

// checkAvailable rejects calls whose context has ended, and all calls during an outage.
func (b *Backend) checkAvailable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if outage := b.outage.Load(); outage != nil {
		return verification.Unavailable(*outage)
	}
	return nil
}

// now returns the store clock's time. Operations read it under the project's lock, so times follow the order of their effects.
func (b *Backend) now() time.Time { return verification.TruncateTime(b.clock.Now()) }
