package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func storageCap() []check {
	return []check{
		{name: "evicts the oldest that needs nothing more, by creation", needs: aCap, run: capEvicts},
		{name: "never evicts what is open", needs: aCap, run: capKeepsOpen},
		{name: "evicts an earlier request that became evictable later", needs: aCap, run: capEvictsByAge},
		{name: "lets in an id that exists and fills a place that was freed", needs: aCap, run: capFreed},
		{name: "follows a cap that is lowered", needs: aCap, run: capLowered},
		{name: "evicts no code that can come back until it has rested", needs: aCap | aSteppedClock, run: capLetsRest},
		{name: "is not exceeded by creators that race", needs: aCap | exactLimits, run: capRaced},
	}
}

func maxStored(n int) verification.Limits { return verification.Limits{MaxStored: n} }

// lasting returns a creation of a request that stays pending for as long as any check runs.
func (t *trial) lasting() verification.New {
	n := t.new()
	n.TTL = 24 * time.Hour
	return n
}

// isStored expects that of all requests exactly those with the numbers are stored.
func (t *trial) isStored(ctx context.Context, s verification.Store, all []verification.Request, numbers ...int) {
	ginkgo.GinkgoHelper()
	for i, r := range all {
		_, err := s.Get(ctx, r.ID)
		if slices.Contains(numbers, i) {
			t.Expect(err).NotTo(HaveOccurred(), "request %d is kept", i)
		} else {
			t.Expect(err).To(haveCode(verification.CodeNotFound), "request %d is evicted", i)
		}
	}
}

// capEvicts has open and finished requests by turns and finishes them in the reverse order, so that no other order
// than that of their creation fits.
func capEvicts(ctx context.Context, t *trial) {
	a, b := t.open(), t.open()
	news := []verification.New{
		t.lasting(), t.lasting(), t.lasting(), t.lapsing(1), t.lasting(), t.lasting(), t.lasting(), t.lapsing(0),
	}
	all := make([]verification.Request, len(news))
	for i, n := range news {
		all[i] = t.create(ctx, []verification.Store{a, b}[i%2], n)
		t.moment(ctx)
	}
	t.lapse()
	t.update(ctx, a, all[6].ID, verify(false))
	t.moment(ctx)
	t.update(ctx, b, all[5].ID, failed(t.update(ctx, a, all[5].ID, verify(true)), time.Time{}))
	t.moment(ctx)
	t.update(ctx, b, all[4].ID, dueIn(time.Hour))
	t.update(ctx, a, all[3].ID, expire)
	t.moment(ctx)
	t.update(ctx, b, all[1].ID, delivered(t.update(ctx, a, all[1].ID, verify(true))))
	t.update(ctx, a, all[0].ID, verify(true))

	limits := maxStored(len(all))
	for _, kept := range [][]int{{0, 2, 3, 4, 5, 6, 7}, {0, 2, 4, 5, 6, 7}, {0, 2, 4, 6, 7}, {0, 2, 4, 7}, {0, 2, 4}} {
		t.admitted(ctx, b, t.lasting(), limits)
		t.harness.Settle()
		t.isStored(ctx, a, all, kept...)
	}
	t.refused(ctx, a, t.new(), limits, verification.CodeTooManyStored)
	t.isStored(ctx, a, all, 0, 2, 4)
}

func capKeepsOpen(ctx context.Context, t *trial) {
	s := t.open()
	limits := maxStored(4)
	all := make([]verification.Request, 4)
	for i := range all {
		all[i] = t.admitted(ctx, s, t.lasting(), limits).Request
	}
	t.update(ctx, s, all[0].ID, verify(true))
	t.update(ctx, s, all[1].ID, failed(t.update(ctx, s, all[1].ID, verify(true)), all[1].ExpiresAt))
	t.update(ctx, s, all[2].ID, bind("sender"))
	for i := range all {
		all[i] = t.get(ctx, s, all[i].ID)
	}
	for range 3 {
		t.refused(ctx, s, t.new(), limits, verification.CodeTooManyStored)
	}
	for _, r := range all {
		t.Expect(t.get(ctx, s, r.ID)).To(be(r))
	}
	t.update(ctx, s, all[1].ID, func(r *verification.Request, now time.Time) error {
		return r.RecordAttempt(verification.Attempt{Number: 2, Epoch: r.Epoch, At: now, Delivered: true})
	})
	t.admitted(ctx, s, t.lasting(), limits)
	t.harness.Settle()
	t.isStored(ctx, s, all, 0, 2, 3)
}

func capEvictsByAge(ctx context.Context, t *trial) {
	s := t.open()
	limits := maxStored(2)
	all := []verification.Request{t.create(ctx, s, t.lasting())}
	t.moment(ctx)
	all = append(all, t.create(ctx, s, t.lasting()))
	t.update(ctx, s, all[1].ID, verify(false))
	t.moment(ctx)
	t.update(ctx, s, all[0].ID, verify(false))
	t.admitted(ctx, s, t.lasting(), limits)
	t.harness.Settle()
	t.isStored(ctx, s, all, 1)
}

func capFreed(ctx context.Context, t *trial) {
	s := t.open()
	limits := maxStored(2)
	n := t.lasting()
	first := t.admitted(ctx, s, n, limits).Request
	second := t.admitted(ctx, s, t.lasting(), limits).Request
	t.refused(ctx, s, t.new(), limits, verification.CodeTooManyStored)
	created, err := s.Create(ctx, n, limits)
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(created.Existing).To(BeTrue(), "a retry needs no room")
	t.remove(ctx, s, second.ID)
	t.admitted(ctx, s, t.lasting(), limits)
	t.refused(ctx, s, t.new(), limits, verification.CodeTooManyStored)
	t.Expect(t.get(ctx, s, n.ID)).To(be(first))
	t.admitted(ctx, s, t.lasting(), verification.Limits{})
}

func capLowered(ctx context.Context, t *trial) {
	s := t.open()
	all := make([]verification.Request, 6)
	for i := range all {
		all[i] = t.create(ctx, s, t.lasting())
		t.moment(ctx)
		if i%2 == 0 {
			t.update(ctx, s, all[i].ID, verify(false))
		}
	}
	t.admitted(ctx, s, t.lasting(), maxStored(5)) // one goes for the new one, one for the lower cap
	t.harness.Settle()
	t.isStored(ctx, s, all, 1, 3, 4, 5)
	t.refused(ctx, s, t.new(), maxStored(3), verification.CodeTooManyStored)
	t.Expect(t.get(ctx, s, all[1].ID).Phase).To(Equal(verification.Pending))
}

// capLetsRest fills a store with what was made with Idempotency-Keys and settled in each way.
func capLetsRest(ctx context.Context, t *trial) {
	s := t.open()
	news := []verification.New{t.keyed(), t.keyed(), t.keyed(), t.lasting()}
	all := make([]verification.Request, len(news))
	for i, n := range news {
		all[i] = t.create(ctx, s, n)
		t.moment(ctx)
	}
	t.update(ctx, s, all[0].ID, verify(false))
	t.update(ctx, s, all[1].ID, delivered(t.update(ctx, s, all[1].ID, verify(true))))
	limits := maxStored(len(all))
	rested := all[0].ExpiresAt.Add(verification.CodeRest)
	t.pass(ctx, rested.Sub(t.clock(ctx, s, all[0].ID))-time.Microsecond)
	t.Expect(t.refused(ctx, s, t.new(), limits, verification.CodeTooManyStored)).To(BeNumerically("<=", time.Second))
	t.isStored(ctx, s, all, 0, 1, 2, 3)
	for _, kept := range [][]int{{1, 2, 3}, {2, 3}, {3}} {
		t.pass(ctx, time.Minute)
		t.admitted(ctx, s, t.lasting(), limits)
		t.harness.Settle()
		t.isStored(ctx, s, all, kept...)
	}
	t.refused(ctx, s, t.new(), limits, verification.CodeTooManyStored)
}

func capRaced(ctx context.Context, t *trial) {
	const limit = 10
	stores := t.replicas(4)
	results, errs := race(racers, func(i int) (verification.Created, error) {
		return stores[i%len(stores)].Create(ctx, t.lasting(), maxStored(limit))
	})
	admitted := 0
	for i, err := range errs {
		if err == nil {
			admitted++
			t.Expect(t.get(ctx, stores[0], results[i].Request.ID)).To(be(results[i].Request))
			continue
		}
		t.Expect(err).To(haveCode(verification.CodeTooManyStored))
	}
	t.Expect(admitted).To(Equal(limit))
}
