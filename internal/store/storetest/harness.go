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
	// clock: the specs then wait.
	Advance func(d time.Duration)

	// Tick is the unit of waiting if Advance is nil. Several operations of the store must fit into it. Half a second if zero.
	Tick time.Duration

	// Settle returns once every instance has seen every write acknowledged before. Nil if they see writes at once. It is
	// called before creations whose limits depend on other writes, never between a write and a lookup by key.
	Settle func()

	// Break makes the backend unreachable for all instances and returns the function that repairs it.
	Break func() (repair func())

	lacks Feature
}

// Feature is a set of features that a backend may lack.
type Feature int

// The features; each check says which it needs.
const (
	// Queue: workers compete for what is due, see Harness.Queue.
	Queue Feature = 1 << iota
	// SteppedClock: time passes by Harness.Advance alone.
	SteppedClock
	// ExactLimits: limits and the storage cap are exact for any number of concurrent replicas. Otherwise replicas that create
	// within Settle's lag may exceed a rate together, each by the admissions of the others.
	ExactLimits
	// Cap: the store heeds Limits.MaxStored. A database needs no cap.
	Cap
)

func (h Harness) hasFeature(f Feature) bool { return h.lacks&f == 0 }
