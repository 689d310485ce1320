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
	// Clock decides for every store of the backend; the real one where nil.
	Clock clock.PassiveClock
}

// Backend is what a database would be: the state that all its stores share. It is safe for concurrent use.
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
// replicas do. A project is never forgotten: a process serves the few that it is configured for.
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

// Fail makes every store answer Unavailable because of err, until Fail(nil): a rehearsal of an outage.
func (b *Backend) Fail(err error) {
	if err == nil {
		b.outage.Store(nil)
		return
	}
	b.outage.Store(&err)
}

// admit is the door of every operation: none begins for a caller who has gone, or on a backend that is out.
func (b *Backend) admit(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if outage := b.outage.Load(); outage != nil {
		return verification.Unavailable(*outage)
	}
	return nil
}

// now is the time that decides. Operations read it under the project's lock, so it is in the order of their effects.
func (b *Backend) now() time.Time { return instant(b.clock.Now()) }

// instant cuts a time to what a store keeps. The zero time stays zero.
func instant(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
