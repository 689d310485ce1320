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

// counted is a store that counts how often it is asked to count.
type counted struct {
	*memory.Store

	asked int
}

func (c *counted) Stored(ctx context.Context) (verification.Stored, error) {
	c.asked++
	return c.Store.Stored(ctx)
}

// TestService_countsAgeByTheMachinesClock: the store clock can jump in either direction, and then counts are neither old nor new.
func TestService_countsAgeByTheMachinesClock(t *testing.T) {
	g := NewWithT(t)
	machine := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	s := &server{
		dependencies: Dependencies{Clock: machine}, registry: prometheus.NewRegistry(), clock: storeclock.New(machine, logr.Discard()),
	}
	store := &counted{Store: memory.NewBackend(memory.Options{Clock: machine}).Open("shop/acme")}
	_, err := s.service(store)
	g.Expect(err).NotTo(HaveOccurred())
	for _, row := range []struct {
		ahead, passed time.Duration
		asked         int
	}{{0, 0, 1}, {time.Hour, 0, 1}, {-time.Hour, 0, 1}, {-time.Hour, time.Minute, 2}, {0, time.Minute, 3}} {
		machine.Step(row.passed)
		s.clock.BeginMeasurement()(machine.Now().Add(row.ahead), 0)
		g.Expect(testutil.GatherAndCount(s.registry, "phoneproof_stored_requests")).To(Equal(3))
		g.Expect(store.asked).To(Equal(row.asked), "%v", row)
	}
}
