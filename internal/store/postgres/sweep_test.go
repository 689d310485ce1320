package postgres

import (
	"context"
	"math/rand/v2"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// mutateRandomly makes a random change that the domain allows.
func mutateRandomly(r *verification.Request, now time.Time) error {
	later := time.Duration(rand.IntN(100)) * time.Hour
	switch rand.IntN(6) {
	case 0:
		return verification.ErrUnchanged
	case 1:
		r.Phase = verification.Expired
		return nil
	case 2: // proven, before its end or long before it, with an event that is due, or not
		r.ProvenAt = r.ExpiresAt.Add(-time.Duration(rand.IntN(4)) * verification.ConfirmGrace / 2)
		if rand.IntN(2) == 0 {
			r.Hints = []verification.Hint{{Kind: verification.HintAwaitingConfirmation, At: r.ProvenAt}}
			r.Delivery.NextAttemptAt = now.Add(later - 50*time.Hour)
		}
		return nil
	default:
		r.Phase, r.VerifiedAt, r.Actual = verification.Verified, now.Add(-later), r.Phone
		switch rand.IntN(4) {
		case 0:
			r.Delivery.NextAttemptAt = now.Add(later - 50*time.Hour)
			if r.Test { // the last attempt is before EventLife, so that one that is given up is always due
				r.Delivery.NextAttemptAt = now.Add(-later)
			}
		case 1:
			r.Delivery.DeliveredAt = now.Add(-later)
		case 2:
			r.Delivery.ExhaustedAt = now.Add(-later)
		}
		return nil
	}
}

// createVariedRequests stores requests of every age and state, and returns them as stored.
func createVariedRequests(ctx context.Context, s *Store, n int) []verification.Request {
	GinkgoHelper()
	var all []verification.Request
	for i := range n {
		in := creationOf(i)
		in.TTL = time.Duration(rand.IntN(100)-50)*time.Hour + 30*time.Minute // no request expires while the spec runs
		in.BodyHash, in.Test = []string{"", "hash"}[i%2], i%3 == 0
		_, err := s.Create(ctx, in, verification.Limits{})
		Expect(err).NotTo(HaveOccurred())
		r, err := s.Update(ctx, in.ID, mutateRandomly)
		Expect(err).NotTo(HaveOccurred())
		all = append(all, r)
	}
	return all
}

var _ = Describe("Due work", func() {
	for name, events := range map[string]verification.EventPolicy{
		"events are sent": verification.EventsOn, "events are paused": verification.EventsPaused, "there is no webhook": verification.EventsOff,
	} {
		policy := verification.Policy{Retention: 30 * time.Hour, Events: events, TestEvents: (events + 1) % 3}

		It("is the same to a claim as to the domain, where "+name, func(ctx SpecContext) {
			uri, _ := inSchema(ctx)
			s := openStore(ctx, project, uri)
			all := createVariedRequests(ctx, s, 300)
			var want []string
			for _, r := range all {
				if verification.Next(&r, time.Now(), policy).Step != verification.StepWait {
					want = append(want, r.ID)
				}
			}
			claimed, err := s.Claim(ctx, policy, 1000, time.Hour)
			Expect(err).NotTo(HaveOccurred())
			var got []string
			for _, r := range claimed {
				got = append(got, r.ID)
			}
			Expect(got).To(ConsistOf(want))
		})

		It("is the same to a sweep as to the domain, where "+name, func(ctx SpecContext) {
			uri, _ := inSchema(ctx)
			s := openStore(ctx, project, uri)
			all := createVariedRequests(ctx, s, 200)
			_, err := s.Sweep(ctx, policy, 1000)
			Expect(err).NotTo(HaveOccurred())
			_, err = s.Sweep(ctx, policy, 1000)
			Expect(err).NotTo(HaveOccurred())
			for _, r := range all {
				if attended := r.Delivery.Wanted() && r.Delivery.NextAttemptAt.Before(r.EndsAt()); !attended && !r.Test { // claims expire these
					_ = r.Expire(time.Now(), 0)
				}
				left, err := s.Read(ctx, r.ID)
				abandoned := r.Phase != verification.Expired && r.Delivery.Wanted()
				if !abandoned && verification.Next(&r, time.Now(), policy).Step == verification.StepDelete {
					Expect(err).To(MatchError(verification.ErrNotFound))
					continue
				}
				Expect(err).NotTo(HaveOccurred())
				Expect(left.Phase).To(Equal(r.Phase))
			}
		})
	}

	It("excludes requests that are still shown as pending from a sweep and a claim", func(ctx SpecContext) {
		schema := newSchema(ctx)
		advance := newClock(ctx, schema, time.Date(2026, 2, 28, 12, 0, 0, 0, time.UTC))
		s := openStore(ctx, project, withSetting(server.URI("postgres"), "search_path", schema+",pg_catalog"))
		created, err := s.Create(ctx, creationOf(1), verification.Limits{})
		Expect(err).NotTo(HaveOccurred())
		policy := verification.Policy{Retention: time.Hour}
		advance(creationOf(1).TTL + 5*time.Second - time.Microsecond)
		Expect(s.Sweep(ctx, policy, 10)).To(BeZero())
		Expect(s.Claim(ctx, policy, 10, time.Minute)).To(BeEmpty())
		Expect(s.Read(ctx, created.Request.ID)).To(HaveField("Phase", verification.Pending))
		advance(time.Microsecond)
		Expect(s.Sweep(ctx, policy, 10)).To(Equal(verification.Swept{Expired: 1}))
		Expect(s.Read(ctx, created.Request.ID)).To(HaveField("Phase", verification.Expired))
	})

	It("excludes codes that can come back from a sweep until they have rested", func(ctx SpecContext) {
		uri, _ := inSchema(ctx)
		s := openStore(ctx, project, uri)
		resting, rested, random := creationOf(1), creationOf(2), creationOf(3)
		resting.BodyHash, rested.BodyHash = "hash", "hash"
		resting.TTL, rested.TTL, random.TTL = -time.Minute, -verification.CodeRest, -time.Minute
		for _, in := range []verification.New{resting, rested, random} {
			_, err := s.Create(ctx, in, verification.Limits{})
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(s.Sweep(ctx, verification.Policy{}, 10)).To(Equal(verification.Swept{Expired: 3, Deleted: 2}))
		Expect(s.Read(ctx, resting.ID)).To(HaveField("Phase", verification.Expired))
		for _, in := range []verification.New{rested, random} {
			Expect(s.Read(ctx, in.ID)).Error().To(MatchError(verification.ErrNotFound))
		}
	})

	It("leaves no trace of a number after its last request is swept and its windows have ended", func(ctx SpecContext) {
		uri, schema := inSchema(ctx)
		s := openStore(ctx, project, uri)
		in := creationOf(1)
		in.TTL, in.Subject = -time.Hour, "subject"
		_, err := s.Create(ctx, in, verification.Limits{
			PerKey:         verification.Rate{Requests: 9, Period: time.Microsecond},
			PerPhoneNumber: verification.Rate{Requests: 9, Period: time.Microsecond},
			PerPrefix:      verification.PrefixRate{Rate: verification.Rate{Requests: 9, Period: time.Microsecond}, Digits: 6},
			PerSubject:     verification.Rate{Requests: 9, Period: time.Microsecond},
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(queryScalar[int](ctx, "SELECT count(*) FROM "+schema+".phoneproof_group_admissions")).To(Equal(2), "the prefix and the subject")
		declined := creationOf(2)
		declined.TTL = -time.Hour
		Expect(s.Create(ctx, declined, verification.Limits{})).Error().NotTo(HaveOccurred())
		Expect(s.Update(ctx, declined.ID, func(r *verification.Request, now time.Time) error {
			r.Phase, r.Hints = verification.Expired, []verification.Hint{{Kind: verification.HintDeclined, At: now}}
			return nil
		})).Error().NotTo(HaveOccurred())
		Expect(queryScalar[int](ctx, "SELECT count(*) FROM "+schema+".phoneproof_declines")).To(Equal(1))
		for range 2 {
			_, err = s.Sweep(ctx, verification.Policy{}, 10)
			Expect(err).NotTo(HaveOccurred())
		}
		for _, table := range []string{"requests", "number_admissions", "key_admissions", "group_admissions", "declines"} {
			Expect(queryScalar[int](ctx, "SELECT count(*) FROM "+schema+".phoneproof_"+table)).To(BeZero(), table)
		}
	})
})
