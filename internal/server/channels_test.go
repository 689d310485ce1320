package server

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/store/memory"
	"github.com/phoneproof/phoneproof/internal/storeclock"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// countingStore is a store that counts the calls of Stored.
type countingStore struct {
	*memory.Store

	calls int
}

func (c *countingStore) Stored(ctx context.Context) (verification.Stored, error) {
	c.calls++
	return c.Store.Stored(ctx)
}

// TestService_countsAgeByTheMachinesClock checks that jumps of the store clock do not change the age of counts.
func TestService_countsAgeByTheMachinesClock(t *testing.T) {
	g := NewWithT(t)
	machine := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	s := &server{
		dependencies: Dependencies{Clock: machine}, registry: prometheus.NewRegistry(), clock: storeclock.New(machine, logr.Discard()),
	}
	store := &countingStore{Store: memory.NewBackend(memory.Options{Clock: machine}).Open("shop/acme")}
	_, err := s.newService(store)
	g.Expect(err).NotTo(HaveOccurred())
	for _, row := range []struct {
		ahead, passed time.Duration
		calls         int
	}{{0, 0, 1}, {time.Hour, 0, 1}, {-time.Hour, 0, 1}, {-time.Hour, time.Minute, 2}, {0, time.Minute, 3}} {
		machine.Step(row.passed)
		s.clock.BeginMeasurement()(machine.Now().Add(row.ahead), 0)
		g.Expect(testutil.GatherAndCount(s.registry, "phoneproof_stored_requests")).To(Equal(3))
		g.Expect(store.calls).To(Equal(row.calls), "%v", row)
	}
}
