package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func storageCapChecks() []check {
	return []check{
		{name: "evicts the oldest finished request, by creation", needs: Cap, run: capEvicts},
		{name: "never evicts open requests", needs: Cap, run: capKeepsOpen},
		{name: "evicts an earlier request that became evictable later", needs: Cap, run: capEvictsByAge},
		{name: "admits an existing id, and fills a freed place", needs: Cap, run: capFreed},
		{name: "follows a cap that is lowered", needs: Cap, run: capLowered},
		{name: "evicts no code that can come back until it has rested", needs: Cap | SteppedClock, run: capKeepsResting},
		{name: "is not exceeded by concurrent creations", needs: Cap | ExactLimits, run: capRaced},
	}
}

func maxStored(n int) verification.Limits { return verification.Limits{MaxStored: n} }

// newLasting returns a creation of a request that stays pending during any check.
func (t *trial) newLasting() verification.New {
	n := t.newCreation()
	n.TTL = 24 * time.Hour
	return n
}

// expectStored expects that exactly the requests with these numbers are stored.
func (t *trial) expectStored(ctx context.Context, s verification.Store, all []verification.Request, numbers ...int) {
	ginkgo.GinkgoHelper()
	for i, r := range all {
		_, err := s.Read(ctx, r.ID)
		if slices.Contains(numbers, i) {
			t.Expect(err).NotTo(HaveOccurred(), "request %d is kept", i)
		} else {
			t.Expect(err).To(haveCode(verification.CodeNotFound), "request %d is evicted", i)
		}
	}
}

// capEvicts alternates open and finished requests and finishes them in reverse, so that only the order of creation fits.
func capEvicts(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	news := []verification.New{
		t.newLasting(), t.newLasting(), t.newLasting(), t.newLapsing(1), t.newLasting(), t.newLasting(), t.newLasting(), t.newLapsing(0),
	}
	all := make([]verification.Request, len(news))
	for i, n := range news {
		all[i] = t.createRequest(ctx, []verification.Store{a, b}[i%2], n)
		t.passMoment(ctx)
	}
	t.lapseRequests()
	t.updateRequest(ctx, a, all[6].ID, verifyClaimed(false))
	t.passMoment(ctx)
	t.updateRequest(ctx, b, all[5].ID, recordFailed(t.updateRequest(ctx, a, all[5].ID, verifyClaimed(true)), time.Time{}))
	t.passMoment(ctx)
	t.updateRequest(ctx, b, all[4].ID, dueIn(time.Hour))
	t.updateRequest(ctx, a, all[3].ID, expireLapsed)
	t.passMoment(ctx)
	t.updateRequest(ctx, b, all[1].ID, recordDelivered(t.updateRequest(ctx, a, all[1].ID, verifyClaimed(true))))
	t.updateRequest(ctx, a, all[0].ID, verifyClaimed(true))

	limits := maxStored(len(all))
	for _, kept := range [][]int{{0, 2, 3, 4, 5, 6, 7}, {0, 2, 4, 5, 6, 7}, {0, 2, 4, 6, 7}, {0, 2, 4, 7}, {0, 2, 4}} {
		t.expectAdmitted(ctx, b, t.newLasting(), limits)
		t.harness.Settle()
		t.expectStored(ctx, a, all, kept...)
	}
	t.expectRefused(ctx, a, t.newCreation(), limits, verification.CodeTooManyStored)
	t.expectStored(ctx, a, all, 0, 2, 4)
}

func capKeepsOpen(ctx context.Context, t *trial) {
	s := t.openReplica()
	limits := maxStored(4)
	all := make([]verification.Request, 4)
	for i := range all {
		all[i] = t.expectAdmitted(ctx, s, t.newLasting(), limits).Request
	}
	t.updateRequest(ctx, s, all[0].ID, verifyClaimed(true))
	t.updateRequest(ctx, s, all[1].ID, recordFailed(t.updateRequest(ctx, s, all[1].ID, verifyClaimed(true)), all[1].ExpiresAt))
	t.updateRequest(ctx, s, all[2].ID, bindSender("sender"))
	for i := range all {
		all[i] = t.getRequest(ctx, s, all[i].ID)
	}
	for range 3 {
		t.expectRefused(ctx, s, t.newCreation(), limits, verification.CodeTooManyStored)
	}
	for _, r := range all {
		t.Expect(t.getRequest(ctx, s, r.ID)).To(equalRequest(r))
	}
	t.updateRequest(ctx, s, all[1].ID, func(r *verification.Request, now time.Time) error {
		return r.RecordAttempt(verification.Attempt{Event: r.Event(), Number: 2, Epoch: r.Epoch, At: now, Delivered: true})
	})
	t.expectAdmitted(ctx, s, t.newLasting(), limits)
	t.harness.Settle()
	t.expectStored(ctx, s, all, 0, 2, 3)
}

func capEvictsByAge(ctx context.Context, t *trial) {
	s := t.openReplica()
	limits := maxStored(2)
	all := []verification.Request{t.createRequest(ctx, s, t.newLasting())}
	t.passMoment(ctx)
	all = append(all, t.createRequest(ctx, s, t.newLasting()))
	t.updateRequest(ctx, s, all[1].ID, verifyClaimed(false))
	t.passMoment(ctx)
	t.updateRequest(ctx, s, all[0].ID, verifyClaimed(false))
	t.expectAdmitted(ctx, s, t.newLasting(), limits)
	t.harness.Settle()
	t.expectStored(ctx, s, all, 1)
}

func capFreed(ctx context.Context, t *trial) {
	s := t.openReplica()
	limits := maxStored(2)
	n := t.newLasting()
	first := t.expectAdmitted(ctx, s, n, limits).Request
	second := t.expectAdmitted(ctx, s, t.newLasting(), limits).Request
	t.expectRefused(ctx, s, t.newCreation(), limits, verification.CodeTooManyStored)
	created, err := s.Create(ctx, n, limits)
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(created.Existing).To(BeTrue(), "a retry needs no room")
	t.deleteRequest(ctx, s, second.ID)
	t.expectAdmitted(ctx, s, t.newLasting(), limits)
	t.expectRefused(ctx, s, t.newCreation(), limits, verification.CodeTooManyStored)
	t.Expect(t.getRequest(ctx, s, n.ID)).To(equalRequest(first))
	t.expectAdmitted(ctx, s, t.newLasting(), verification.Limits{})
}

func capLowered(ctx context.Context, t *trial) {
	s := t.openReplica()
	all := make([]verification.Request, 6)
	for i := range all {
		all[i] = t.createRequest(ctx, s, t.newLasting())
		t.passMoment(ctx)
		if i%2 == 0 {
			t.updateRequest(ctx, s, all[i].ID, verifyClaimed(false))
		}
	}
	t.expectAdmitted(ctx, s, t.newLasting(), maxStored(5)) // evicts one for the new request and one for the lower cap
	t.harness.Settle()
	t.expectStored(ctx, s, all, 1, 3, 4, 5)
	t.expectRefused(ctx, s, t.newCreation(), maxStored(3), verification.CodeTooManyStored)
	t.Expect(t.getRequest(ctx, s, all[1].ID).Phase).To(Equal(verification.Pending))
}

// capKeepsResting fills a store with requests that have an Idempotency-Key and were finished in different ways.
func capKeepsResting(ctx context.Context, t *trial) {
	s := t.openReplica()
	news := []verification.New{t.newKeyed(), t.newKeyed(), t.newKeyed(), t.newLasting()}
	all := make([]verification.Request, len(news))
	for i, n := range news {
		all[i] = t.createRequest(ctx, s, n)
		t.passMoment(ctx)
	}
	t.updateRequest(ctx, s, all[0].ID, verifyClaimed(false))
	t.updateRequest(ctx, s, all[1].ID, recordDelivered(t.updateRequest(ctx, s, all[1].ID, verifyClaimed(true))))
	limits := maxStored(len(all))
	rested := all[0].ExpiresAt.Add(verification.CodeRest)
	t.passTime(ctx, rested.Sub(t.readClock(ctx, s, all[0].ID))-time.Microsecond)
	t.Expect(t.expectRefused(ctx, s, t.newCreation(), limits, verification.CodeTooManyStored)).To(BeNumerically("<=", time.Second))
	t.expectStored(ctx, s, all, 0, 1, 2, 3)
	for _, kept := range [][]int{{1, 2, 3}, {2, 3}, {3}} {
		t.passTime(ctx, time.Minute)
		t.expectAdmitted(ctx, s, t.newLasting(), limits)
		t.harness.Settle()
		t.expectStored(ctx, s, all, kept...)
	}
	t.expectRefused(ctx, s, t.newCreation(), limits, verification.CodeTooManyStored)
}

func capRaced(ctx context.Context, t *trial) {
	const limit = 10
	stores := t.openReplicas(4)
	results, errs := runRacers(racers, func(i int) (verification.Created, error) {
		return stores[i%len(stores)].Create(ctx, t.newLasting(), maxStored(limit))
	})
	admitted := 0
	for i, err := range errs {
		if err == nil {
			admitted++
			t.Expect(t.getRequest(ctx, stores[0], results[i].Request.ID)).To(equalRequest(results[i].Request))
			continue
		}
		t.Expect(err).To(haveCode(verification.CodeTooManyStored))
	}
	t.Expect(admitted).To(Equal(limit))
}
