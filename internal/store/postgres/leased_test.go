package postgres

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/phoneproof/phoneproof/internal/verification"
)

var _ = Describe("A change after a claim", func() {
	var (
		s, other *Store
		claimed  verification.Request
		reads    *atomic.Int64
	)

	BeforeEach(func(ctx SpecContext) {
		uri, _ := inSchema(ctx)
		s, other = openStore(ctx, project, uri), openStore(ctx, project, uri)
		_, err := s.Create(ctx, creationOf(1), verification.Limits{})
		Expect(err).NotTo(HaveOccurred())
		verified, err := s.Update(ctx, creationOf(1).ID, func(r *verification.Request, now time.Time) error {
			return r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, verification.NewEventKinds(verification.EventSuccess))
		})
		Expect(err).NotTo(HaveOccurred())
		all, err := s.Claim(ctx, verification.Policy{Retention: time.Hour, Events: verification.EventsOn}, 1, time.Minute)
		Expect(err).NotTo(HaveOccurred())
		Expect(all).To(HaveLen(1))
		claimed = all[0]
		// The cached state is fresh for two seconds, and a stalled machine may take longer.
		cached := s.leaseCache.states[claimed.ID]
		cached.at, cached.readAt = cached.at.Add(time.Hour), cached.readAt.Add(time.Hour)
		s.leaseCache.states[claimed.ID] = cached
		Expect(claimed.ID).To(Equal(verified.ID))
		reads = new(atomic.Int64)
		s.reads.sizes = prometheus.ObserverFunc(func(float64) { reads.Add(1) })
	})

	record := func(ctx context.Context, times *int) (verification.Request, error) {
		return s.Update(ctx, claimed.ID, func(r *verification.Request, now time.Time) error {
			*times++
			return r.RecordAttempt(verification.Attempt{Event: r.Event(), Number: 1, Epoch: claimed.Epoch, At: now, StatusCode: 200, Delivered: true})
		})
	}

	It("needs no read", func(ctx SpecContext) {
		times := 0
		written, err := record(ctx, &times)
		Expect(err).NotTo(HaveOccurred())
		Expect(times).To(Equal(1))
		Expect(reads.Load()).To(BeZero())
		Expect(other.Read(ctx, claimed.ID)).To(HaveField("Delivery", written.Delivery))
	})

	It("sees a concurrent write of another replica", func(ctx SpecContext) {
		_, err := other.Update(ctx, claimed.ID, func(r *verification.Request, _ time.Time) error {
			r.Delivery.LastReason = "theirs"
			return nil
		})
		Expect(err).NotTo(HaveOccurred())
		times := 0
		written, err := s.Update(ctx, claimed.ID, func(r *verification.Request, _ time.Time) error {
			times++
			r.Delivery.LastStatusCode = 204
			return nil
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(times).To(Equal(2), "once for the outdated claimed state, and once for the state that was read")
		Expect(written.Delivery).To(And(HaveField("LastReason", "theirs"), HaveField("LastStatusCode", 204)))
	})

	It("is refused only on a state that was read", func(ctx SpecContext) {
		refusal, times := errors.New("refused"), 0
		for range 2 {
			_, err := s.Update(ctx, claimed.ID, func(*verification.Request, time.Time) error {
				times++
				return refusal
			})
			Expect(err).To(MatchError(refusal))
		}
		Expect(times).To(Equal(3))
		Expect(reads.Load()).To(BeEquivalentTo(2))
	})

	It("uses a claimed state only while it is fresh", func(ctx SpecContext) {
		s.leaseCache.put(nil, time.Now().Add(time.Hour+maxStateAge))
		Expect(s.leaseCache.states).To(BeEmpty(), "the next claim drops unused states")
		times := 0
		_, err := record(ctx, &times)
		Expect(err).NotTo(HaveOccurred())
		Expect(reads.Load()).To(BeEquivalentTo(1))
	})
})

var _ = Describe("A change whose process slept between its decision and its write", func() {
	It("decides anew after the sleep", func(ctx SpecContext) {
		schema := newSchema(ctx)
		advance := newClock(ctx, schema, time.Date(2026, 2, 28, 12, 0, 0, 0, time.UTC))
		s := openStore(ctx, project, withSetting(server.URI("postgres"), "search_path", schema+",pg_catalog"))
		created, err := s.Create(ctx, creationOf(1), verification.Limits{})
		Expect(err).NotTo(HaveOccurred())
		advance(creationOf(1).TTL - time.Second)
		var decided []time.Time
		r, err := s.Update(ctx, created.Request.ID, func(r *verification.Request, now time.Time) error {
			err := r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, verification.NewEventKinds(verification.EventSuccess))
			if decided = append(decided, now); len(decided) == 1 {
				advance(time.Minute) // after that the request is shown as expired
			}
			return err
		})
		Expect(err).To(MatchError(verification.ErrOutOfTime))
		Expect(r.Phase).To(Equal(verification.Pending))
		Expect(decided).To(HaveLen(2))
		Expect(decided[1].Sub(decided[0])).To(Equal(time.Minute))
	})
})

var _ = Describe("A binding whose request another replica made final concurrently", func() {
	It("leaves the sender's earlier binding as it was", func(ctx SpecContext) {
		uri, _ := inSchema(ctx)
		s, other := openStore(ctx, project, uri), openStore(ctx, project, uri)
		bind := func(r *verification.Request, now time.Time) error {
			return r.Bind(verification.Evidence{Method: r.Method, SentAt: now}, "anna", now, 0)
		}
		for i := range 2 {
			_, err := s.Create(ctx, creationOf(i), verification.Limits{})
			Expect(err).NotTo(HaveOccurred())
		}
		early, late := creationOf(0).ID, creationOf(1).ID
		_, err := s.Update(ctx, early, bind)
		Expect(err).NotTo(HaveOccurred())
		raced := false
		_, err = s.Update(ctx, late, func(r *verification.Request, now time.Time) error {
			if !raced {
				raced = true
				_, err := other.Update(ctx, late, func(r *verification.Request, now time.Time) error {
					return r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, 0)
				})
				Expect(err).NotTo(HaveOccurred())
			}
			return bind(r, now)
		})
		Expect(err).To(MatchError(verification.ErrFinal))
		Expect(other.Awaiting(ctx, "anna")).To(HaveField("ID", early))
	})
})
