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

// mutant is the memory store with one realistic fault.
type mutant struct {
	fault string
	// caughtBy are names, or beginnings of names, of the checks that must reject it.
	caughtBy []string
	// inject is called once per backend and returns the function that injects the fault into each instance.
	inject func(environment) func(*faultyStore)
}

// environment is what a mutant can use besides the store.
type environment struct {
	clock *clocktesting.FakePassiveClock
	// created lists the ids of all creations, also refused ones, oldest first.
	created *sharedList
}

// TestChecks_acceptIntactStore shows that the runner below does not reject every store.
func TestChecks_acceptIntactStore(t *testing.T) {
	t.Parallel()
	for _, c := range allChecks() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if refusal := tryCheck(t, c, faultyHarness(nil)); refusal != "" {
				t.Error(refusal)
			}
		})
	}
}

// TestChecks_acceptRealClock tests the suite for servers whose clock cannot be stepped. In the synctest bubble the waits take no
// time.
func TestChecks_acceptRealClock(t *testing.T) {
	for _, c := range allChecks() {
		if c.needs&needsSteppedClock != 0 {
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

func TestChecks_rejectMutants(t *testing.T) {
	t.Parallel()
	for _, m := range allMutants() {
		for _, name := range m.caughtBy {
			t.Run(m.fault+"/"+name, func(t *testing.T) {
				t.Parallel()
				matching := checksNamed(name)
				if len(matching) == 0 {
					t.Fatal("there is no such check")
				}
				for _, c := range matching {
					synctest.Test(t, func(t *testing.T) { // see letOthersRun
						if tryCheck(t, c, faultyHarness(m.inject)) == "" {
							t.Errorf("accepted by: %s", c.name)
						}
					})
				}
			})
		}
	}
}

// TestChecks_eachCanFail shows that every check rejects at least one mutant.
func TestChecks_eachCanFail(t *testing.T) {
	for _, c := range allChecks() {
		if !slices.ContainsFunc(allMutants(), func(m mutant) bool {
			return slices.ContainsFunc(m.caughtBy, func(name string) bool { return strings.HasPrefix(c.name, name) })
		}) {
			t.Errorf("no mutant shows that this can fail: %s", c.name)
		}
	}
}

func allChecks() (all []check) {
	for _, topic := range allTopics() {
		all = append(all, topic.checks...)
	}
	return all
}

func checksNamed(beginning string) []check {
	return slices.DeleteFunc(allChecks(), func(c check) bool { return !strings.HasPrefix(c.name, beginning) })
}

// refusal is the panic value of a failed assertion; it ends the check as Ginkgo would.
type refusal string

// tryCheck runs a check outside Ginkgo and returns its failure, or an empty text.
func tryCheck(t *testing.T, c check, h Harness) (why string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), specTimeout)
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
	trial.notifyTimeout = 200 * time.Millisecond
	c.run(ctx, trial)
	return ""
}

// faultyHarness is a memory store with a stepped clock and the fault in each instance.
func faultyHarness(inject func(environment) func(*faultyStore)) Harness {
	if inject == nil {
		inject = func(environment) func(*faultyStore) { return func(*faultyStore) {} }
	}
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
	backend := memory.NewBackend(memory.Options{Clock: clock})
	w := environment{clock: clock, created: &sharedList{}}
	injectOne := inject(w)
	open := func(project string) verification.Store {
		s := newFaultyStore(backend.Open(project), w)
		s.project, s.elsewhere = project, backend.Open
		injectOne(s)
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

func allMutants() []mutant {
	return slices.Concat(creationMutants(), stateMutants(), updateMutants(), contactMutants(), subscriptionMutants(),
		countMutants(), activityMutants(), rateMutants(), capMutants(), queueMutants(), eventMutants(), sessionMutants(), declineMutants(), outageMutants(), listMutants())
}
