package memory_test

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/store/memory"
	"github.com/phoneproof/phoneproof/internal/store/storetest"
	"github.com/phoneproof/phoneproof/internal/verification"
)

func TestMemory(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Memory store")
}

var _ = Describe("With a clock that is stepped", func() {
	storetest.Exercise(func() storetest.Harness {
		clock := clocktesting.NewFakePassiveClock(time.Date(2026, 2, 28, 23, 59, 59, 987654321, time.UTC))
		harness := harness(memory.Options{Clock: clock})
		harness.Advance = func(d time.Duration) { clock.SetTime(clock.Now().Add(d)) }
		return harness
	})
})

// The suite for servers whose clock nobody steps must not rot before there is one.
var _ = Describe("With the real clock", func() {
	storetest.Exercise(func() storetest.Harness {
		harness := harness(memory.Options{})
		harness.Tick = 100 * time.Millisecond
		return harness
	})
})

func harness(o memory.Options) storetest.Harness {
	backend := memory.NewBackend(o)
	return storetest.Harness{
		Open:  func(project string) verification.Store { return backend.Open(project) },
		Queue: func(s verification.Store) verification.Queue { return s.(*memory.Store) },
		Break: func() func() {
			backend.Fail(errors.New("broken on purpose"))
			return func() { backend.Fail(nil) }
		},
	}
}
