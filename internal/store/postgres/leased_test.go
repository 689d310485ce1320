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
		s, other = open(ctx, project, uri), open(ctx, project, uri)
		_, err := s.Create(ctx, creationOf(1), verification.Limits{})
		Expect(err).NotTo(HaveOccurred())
		verified, err := s.Update(ctx, creationOf(1).ID, func(r *verification.Request, now time.Time) error {
			return r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, true)
		})
		Expect(err).NotTo(HaveOccurred())
		all, err := s.Claim(ctx, verification.Policy{Retention: time.Hour, Events: verification.EventsOn}, 1, time.Minute)
		Expect(err).NotTo(HaveOccurred())
		Expect(all).To(HaveLen(1))
		claimed = all[0]
		// It is fresh for two seconds only, which a machine that stalls would decide by.
		fresh := s.leased.states[claimed.ID]
		fresh.at, fresh.readAt = fresh.at.Add(time.Hour), fresh.readAt.Add(time.Hour)
		s.leased.states[claimed.ID] = fresh
		Expect(claimed.ID).To(Equal(verified.ID))
		reads = new(atomic.Int64)
		s.reads.sizes = prometheus.ObserverFunc(func(float64) { reads.Add(1) })
	})

	record := func(ctx context.Context, times *int) (verification.Request, error) {
		return s.Update(ctx, claimed.ID, func(r *verification.Request, now time.Time) error {
			*times++
			return r.RecordAttempt(verification.Attempt{Number: 1, Epoch: claimed.Epoch, At: now, StatusCode: 200, Delivered: true})
		})
	}

	It("reads nothing again", func(ctx SpecContext) {
		times := 0
		written, err := record(ctx, &times)
		Expect(err).NotTo(HaveOccurred())
		Expect(times).To(Equal(1))
		Expect(reads.Load()).To(BeZero())
		Expect(other.Get(ctx, claimed.ID)).To(HaveField("Delivery", written.Delivery))
	})

	It("sees what another replica wrote meanwhile", func(ctx SpecContext) {
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
		Expect(times).To(Equal(2), "for the claimed state, which was not current, and for the one that was read")
		Expect(written.Delivery).To(And(HaveField("LastReason", "theirs"), HaveField("LastStatusCode", 204)))
	})

	It("is refused for nothing but a state that was read", func(ctx SpecContext) {
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

	It("goes by a claim only while that is fresh", func(ctx SpecContext) {
		s.leased.put(nil, time.Now().Add(time.Hour+freshness))
		Expect(s.leased.states).To(BeEmpty(), "what nobody asks for goes with the next claim")
		times := 0
		_, err := record(ctx, &times)
		Expect(err).NotTo(HaveOccurred())
		Expect(reads.Load()).To(BeEquivalentTo(1))
	})
})

var _ = Describe("A change whose process slept between its decision and its write", func() {
	It("decides anew where it slept", func(ctx SpecContext) {
		schema := newSchema(ctx)
		advance := newClock(ctx, schema, time.Date(2026, 2, 28, 12, 0, 0, 0, time.UTC))
		s := open(ctx, project, with(server.URI("postgres"), "search_path", schema+",pg_catalog"))
		created, err := s.Create(ctx, creationOf(1), verification.Limits{})
		Expect(err).NotTo(HaveOccurred())
		advance(creationOf(1).TTL - time.Second)
		var decided []time.Time
		r, err := s.Update(ctx, created.Request.ID, func(r *verification.Request, now time.Time) error {
			err := r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, true)
			if decided = append(decided, now); len(decided) == 1 {
				advance(time.Minute) // by then the request is shown as expired
			}
			return err
		})
		Expect(err).To(MatchError(verification.ErrOutOfTime))
		Expect(r.Phase).To(Equal(verification.Pending))
		Expect(decided).To(HaveLen(2))
		Expect(decided[1].Sub(decided[0])).To(Equal(time.Minute))
	})
})

var _ = Describe("A binding whose request another replica made final meanwhile", func() {
	It("leaves the sender's earlier binding as it was", func(ctx SpecContext) {
		uri, _ := inSchema(ctx)
		s, other := open(ctx, project, uri), open(ctx, project, uri)
		bind := func(r *verification.Request, now time.Time) error {
			return r.Bind(verification.Evidence{Method: r.Method, SentAt: now}, "anna", now)
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
					return r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, false)
				})
				Expect(err).NotTo(HaveOccurred())
			}
			return bind(r, now)
		})
		Expect(err).To(MatchError(verification.ErrFinal))
		Expect(other.Awaiting(ctx, "anna")).To(HaveField("ID", early))
	})
})
