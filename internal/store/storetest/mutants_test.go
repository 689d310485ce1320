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
	inject func() func(*faultyStore)
}

// TestChecks_acceptIntactStore shows that the runner below does not reject every store.
func TestChecks_acceptIntactStore(t *testing.T) {
	t.Parallel()
	for _, c := range allChecks() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if refusal := tryCheck(t, c, faultyHarness(perInstance(func(*faultyStore) {}))); refusal != "" {
				t.Error(refusal)
			}
		})
	}
}

// TestChecks_acceptRealClock tests the suite for servers whose clock cannot be stepped. In the synctest bubble the waits take no
// time.
func TestChecks_acceptRealClock(t *testing.T) {
	for _, c := range allChecks() {
		if c.needs&SteppedClock != 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if refusal := tryCheck(t, c, harnessOf(memory.NewBackend(memory.Options{}))); refusal != "" {
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
				matching := slices.DeleteFunc(allChecks(), func(c check) bool { return !strings.HasPrefix(c.name, name) })
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

func allChecks() (all []check) {
	for _, topic := range allTopics() {
		all = append(all, topic.checks...)
	}
	return all
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

func harnessOf(backend *memory.Backend) Harness {
	return Harness{
		Open:  func(project string) verification.Store { return backend.Open(project) },
		Queue: func(s verification.Store) verification.Queue { return s.(verification.Queue) },
		Break: func() func() {
			backend.Fail(fmt.Errorf("reach the backend: %w", errors.ErrUnsupported))
			return func() { backend.Fail(nil) }
		},
	}
}

// faultyHarness is a memory store with a stepped clock and the fault in each instance.
func faultyHarness(inject func() func(*faultyStore)) Harness {
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	backend := memory.NewBackend(memory.Options{Clock: clock})
	harness, injectOne := harnessOf(backend), inject()
	harness.Open = func(project string) verification.Store {
		s := newFaultyStore(backend.Open(project), project)
		injectOne(s)
		return s
	}
	harness.Advance = func(d time.Duration) { clock.SetTime(clock.Now().Add(d)) }
	return harness
}
