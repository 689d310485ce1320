package request

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/store/memory"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// start is the time at which the clocks of the tests start.
var start = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// storedRequests are the requests of a project in a memory store with a stepped clock.
type storedRequests struct {
	*WithT

	t       *testing.T
	clock   *clocktesting.FakePassiveClock
	backend *memory.Backend
	store   verification.Store
}

func newStoredRequests(t *testing.T) *storedRequests {
	t.Helper()
	clock := clocktesting.NewFakePassiveClock(start)
	backend := memory.NewBackend(memory.Options{Clock: clock})
	return &storedRequests{WithT: NewWithT(t), t: t, clock: clock, backend: backend, store: backend.Open("shop/acme")}
}

func (s *storedRequests) create(id string) {
	s.t.Helper()
	number, err := phone.FromE164("+4915112345678")
	s.Expect(err).NotTo(HaveOccurred())
	_, err = s.store.Create(s.t.Context(), verification.New{
		ID: id, Phone: number, Method: verification.WhatsApp, TTL: ttl,
	}, verification.Limits{})
	s.Expect(err).NotTo(HaveOccurred())
}

// verify stores a verified request.
func (s *storedRequests) verify(id string) {
	s.t.Helper()
	s.create(id)
	s.update(id, func(r *verification.Request, now time.Time) error {
		return r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, verification.NewEventKinds(verification.EventSuccess))
	})
}

func (s *storedRequests) update(id string, mutate func(*verification.Request, time.Time) error) {
	s.t.Helper()
	_, err := s.store.Update(s.t.Context(), id, mutate)
	s.Expect(err).NotTo(HaveOccurred())
}

func (s *storedRequests) stepClock(d time.Duration) { s.clock.SetTime(s.clock.Now().Add(d)) }
