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

var _ = Describe("The memory store", func() {
	storetest.Exercise(func() storetest.Harness {
		clock := clocktesting.NewFakePassiveClock(time.Date(2026, 2, 28, 23, 59, 59, 987654321, time.UTC))
		backend := memory.NewBackend(memory.Options{Clock: clock})
		return storetest.Harness{
			Open:    func(project string) verification.Store { return backend.Open(project) },
			Queue:   func(s verification.Store) verification.Queue { return s.(*memory.Store) },
			Advance: func(d time.Duration) { clock.SetTime(clock.Now().Add(d)) },
			Break: func() func() {
				backend.Fail(errors.New("broken on purpose"))
				return func() { backend.Fail(nil) }
			},
		}
	}, 0)
})
