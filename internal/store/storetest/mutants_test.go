package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/store/memory"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// A mutant is the memory store with one fault that a store could well have.
type mutant struct {
	fault string
	// caughtBy are names of checks (or how they begin) that must refuse it.
	caughtBy []string
	// bend is called once per backend and returns what is done to each instance of it.
	bend func(world) func(*bent)
}

// world is what a mutant may know besides the store.
type world struct {
	clock *clocktesting.FakePassiveClock
	// remember lists the ids of every creation that was asked for, oldest first.
	remember *memoirs
}

// TestChecks_acceptIntactStore shows that the runner below does not refuse whatever it is given.
func TestChecks_acceptIntactStore(t *testing.T) {
	t.Parallel()
	for _, c := range allChecks() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if refusal := tryCheck(t, c, bentHarness(nil)); refusal != "" {
				t.Error(refusal)
			}
		})
	}
}

// TestChecks_acceptRealClock keeps the suite for servers whose clock nobody steps from rotting until there is one. In
// the bubble the waits cost nothing.
func TestChecks_acceptRealClock(t *testing.T) {
	for _, c := range allChecks() {
		if c.needs&aSteppedClock != 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				backend := memory.NewBackend(memory.Options{})
				harness := Harness{
					Open:  func(project string) verification.Store { return backend.Open(project) },
					Queue: func(s verification.Store) verification.Queue { return s.(verification.Queue) },
					Break: func() func() {
						backend.Fail(errors.ErrUnsupported)
						return func() { backend.Fail(nil) }
					},
				}
				if refusal := tryCheck(t, c, harness); refusal != "" {
					t.Error(refusal)
				}
			})
		})
	}
}

func TestChecks_refuseMutants(t *testing.T) {
	t.Parallel()
	for _, m := range mutants() {
		for _, name := range m.caughtBy {
			t.Run(m.fault+"/"+name, func(t *testing.T) {
				t.Parallel()
				matching := checksNamed(name)
				if len(matching) == 0 {
					t.Fatal("there is no such check")
				}
				for _, c := range matching {
					if tryCheck(t, c, bentHarness(m.bend)) == "" {
						t.Errorf("accepted by: %s", c.name)
					}
				}
			})
		}
	}
}

// TestChecks_eachCanFail shows that no check is there for the count alone.
func TestChecks_eachCanFail(t *testing.T) {
	for _, c := range allChecks() {
		if !slices.ContainsFunc(mutants(), func(m mutant) bool {
			return slices.ContainsFunc(m.caughtBy, func(name string) bool { return strings.HasPrefix(c.name, name) })
		}) {
			t.Errorf("no mutant shows that this can fail: %s", c.name)
		}
	}
}

func allChecks() (all []check) {
	for _, topic := range topics() {
		all = append(all, topic.checks...)
	}
	return all
}

func checksNamed(beginning string) []check {
	return slices.DeleteFunc(allChecks(), func(c check) bool { return !strings.HasPrefix(c.name, beginning) })
}

// refusal is what a failed assertion throws, to end the check as Ginkgo would.
type refusal string

// tryCheck runs a check outside of Ginkgo and returns what it refused, or nothing.
func tryCheck(t *testing.T, c check, h Harness) (why string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	defer func() {
		switch thrown := recover().(type) {
		case nil:
		case refusal:
			why = string(thrown)
		default:
			panic(thrown)
		}
	}()
	trial := newTrial(NewGomega(func(message string, _ ...int) { panic(refusal(message)) }), h)
	trial.news = 200 * time.Millisecond
	c.run(ctx, trial)
	return ""
}

// bentHarness is a stepped memory store, each instance of which is bent.
func bentHarness(bend func(world) func(*bent)) Harness {
	if bend == nil {
		bend = func(world) func(*bent) { return func(*bent) {} }
	}
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
	backend := memory.NewBackend(memory.Options{Clock: clock})
	w := world{clock: clock, remember: &memoirs{}}
	bendOne := bend(w)
	open := func(project string) verification.Store {
		s := straight(backend.Open(project), w)
		s.project, s.elsewhere = project, backend.Open
		bendOne(s)
		return s
	}
	return Harness{
		Open:    open,
		Queue:   func(s verification.Store) verification.Queue { return s.(verification.Queue) },
		Advance: func(d time.Duration) { clock.SetTime(clock.Now().Add(d)) },
		Break: func() func() {
			backend.Fail(fmt.Errorf("reach the backend: %w", errors.ErrUnsupported))
			return func() { backend.Fail(nil) }
		},
	}
}

func mutants() []mutant {
	return slices.Concat(creationMutants(), stateMutants(), updateMutants(), contactMutants(), subscriptionMutants(),
		countMutants(), rateMutants(), capMutants(), queueMutants(), outageMutants())
}
