package storetest

import (
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// Harness is one backend under test. Every spec asks for a new one and works in projects of its own, so harnesses may
// share a server. Clean up with ginkgo.DeferCleanup.
type Harness struct {
	// Open returns another instance of the store of the project with that "namespace/name", over the same backend:
	// another replica. Names are new on every run, namespaces are valid and may have to be made.
	Open func(project string) verification.Store

	// Queue returns the queue that belongs to a store from Open. Nil where workers do not compete.
	Queue func(verification.Store) verification.Queue

	// Advance moves the clock that decides for the store on by exactly d, for all instances. Nil if nobody can, as
	// with a database's own clock; the specs then wait, and leave out what only a clock that stands still can show.
	Advance func(d time.Duration)

	// Tick is the unit of the specs that wait, where Advance is nil: several operations of the store must surely fit
	// into it. Half a second where zero.
	Tick time.Duration

	// Settle returns once every instance knows of every write acknowledged before. Nil where they know at once. It is
	// called before creations whose limits depend on other writes, never between a write and a look-up by key.
	Settle func()

	// BoundedOvershoot says that replicas which create within Settle's lag may together exceed a rate, each by what
	// the others admit. Where false, limits and the storage cap are exact however many race.
	BoundedOvershoot bool

	// Uncapped says that the store does not heed Limits.MaxStored: a database needs no cap.
	Uncapped bool

	// Break makes the backend unreachable for all instances and returns the repair. Nil where that cannot be done.
	Break func() (repair func())
}

// need is what a check demands of a harness.
type need int

const (
	aQueue need = 1 << iota
	aSteppedClock
	exactLimits
	anOutage
	aCap
)

// lacks says why a check cannot run on the harness, or nothing.
func (h Harness) lacks(n need) string {
	switch {
	case n&aQueue != 0 && h.Queue == nil:
		return "the store's workers do not compete"
	case n&aSteppedClock != 0 && h.Advance == nil:
		return "the store's clock cannot be stepped"
	case n&exactLimits != 0 && h.BoundedOvershoot:
		return "the store's limits are not exact among replicas"
	case n&aCap != 0 && h.Uncapped:
		return "the store does not cap what is stored"
	case n&anOutage != 0 && h.Break == nil:
		return "the backend cannot be broken"
	default:
		return ""
	}
}
