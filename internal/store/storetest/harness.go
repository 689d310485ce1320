package storetest

import (
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// Harness is one backend under test. Every spec creates its own harness and uses its own projects, so harnesses may share
// a server. Clean up with ginkgo.DeferCleanup.
type Harness struct {
	// Open returns another replica: a new instance of the store of the project with that "namespace/name" on the same
	// backend. Names are new on every run; namespaces are valid and may have to be created.
	Open func(project string) verification.Store

	// Queue returns the queue of a store from Open. Nil if workers do not compete.
	Queue func(verification.Store) verification.Queue

	// Advance advances the store clock by exactly d, for all instances. Nil if that is impossible, as with a database's own
	// clock: the specs then wait, and checks that need a stopped clock are skipped.
	Advance func(d time.Duration)

	// Tick is the unit of waiting if Advance is nil. Several operations of the store must fit into it. Half a second if zero.
	Tick time.Duration

	// Settle returns once every instance has seen every write acknowledged before. Nil if they see writes at once. It is
	// called before creations whose limits depend on other writes, never between a write and a lookup by key.
	Settle func()

	// BoundedOvershoot allows replicas that create within Settle's lag to exceed a rate together, each by the admissions of
	// the others. If false, limits and the storage cap are exact for any number of concurrent replicas.
	BoundedOvershoot bool

	// Uncapped reports whether the store ignores Limits.MaxStored: a database needs no cap.
	Uncapped bool

	// Break makes the backend unreachable for all instances and returns the function that repairs it. Nil if that is
	// impossible.
	Break func() (repair func())
}

// need is a set of features that a check needs from a harness.
type need int

const (
	needsQueue need = 1 << iota
	needsSteppedClock
	needsExactLimits
	needsOutage
	needsCap
)

// missingNeed returns why a check cannot run on the harness, or an empty text.
func (h Harness) missingNeed(n need) string {
	switch {
	case n&needsQueue != 0 && h.Queue == nil:
		return "the store's workers do not compete"
	case n&needsSteppedClock != 0 && h.Advance == nil:
		return "the store's clock cannot be stepped"
	case n&needsExactLimits != 0 && h.BoundedOvershoot:
		return "the store's limits are not exact among replicas"
	case n&needsCap != 0 && h.Uncapped:
		return "the store does not cap what is stored"
	case n&needsOutage != 0 && h.Break == nil:
		return "the backend cannot be broken"
	default:
		return ""
	}
}
