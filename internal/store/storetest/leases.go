package storetest

import (
	"context"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func leases() []check {
	return []check{
		{name: "keep work from others until they end", needs: aQueue, run: timely(leaseHolds)},
		{name: "end neither early nor late", needs: aQueue | aSteppedClock, run: leaseEnds},
		{name: "that end give work back in the order it had", needs: aQueue, run: timely(leaseOrder)},
		{name: "fence off a holder who slept through his", needs: aQueue, run: leaseFences},
		{name: "end with the step that they were for", needs: aQueue, run: leaseEndsEarly},
		{name: "count an epoch for each claim, none for other writes", needs: aQueue, run: leaseCounts},
	}
}

func (t *trial) due(ctx context.Context, s verification.Store) verification.Request {
	return t.update(ctx, s, t.create(ctx, s, t.lasting()).ID, verify(true))
}

func leaseHolds(ctx context.Context, t *trial) {
	a, b := t.open(), t.open()
	short, long := t.due(ctx, a), t.due(ctx, a)
	t.Expect(ids(t.claim(ctx, a, sending(0), 1, t.harness.Tick))).To(Equal([]string{short.ID}))
	t.Expect(ids(t.claim(ctx, b, sending(0), plenty, longLease))).To(Equal([]string{long.ID}))
	t.Expect(t.claim(ctx, b, sending(0), plenty, longLease)).NotTo(ContainElement(HaveField("ID", long.ID)))
	t.pass(ctx, t.harness.Tick)
	t.Expect(ids(t.claim(ctx, b, sending(0), plenty, longLease))).To(Or(Equal([]string{short.ID}), BeEmpty()))
	t.Expect(t.claim(ctx, a, sending(0), plenty, longLease)).To(BeEmpty())
	t.Expect(t.get(ctx, a, short.ID).Epoch).To(BeEquivalentTo(2), "the lease that ended was given again")
	t.Expect(t.get(ctx, a, long.ID).Epoch).To(BeEquivalentTo(1), "the lease that did not was not")
}

func leaseEnds(ctx context.Context, t *trial) {
	s := t.open()
	r := t.due(ctx, s)
	const lease = 30 * time.Second
	for range 3 {
		t.Expect(ids(t.claim(ctx, s, sending(0), plenty, lease))).To(Equal([]string{r.ID}))
		t.pass(ctx, lease-time.Microsecond)
		t.Expect(t.claim(ctx, s, sending(0), plenty, lease)).To(BeEmpty())
		t.pass(ctx, time.Microsecond)
	}
}

// leaseOrder lets the leases of two requests end in the reverse of the order in which they became due.
func leaseOrder(ctx context.Context, t *trial) {
	s := t.open()
	first, second := t.due(ctx, s), t.create(ctx, s, t.lasting())
	t.moment(ctx)
	t.update(ctx, s, second.ID, verify(true))
	t.Expect(ids(t.claim(ctx, s, sending(0), 1, t.harness.Tick))).To(Equal([]string{first.ID}))
	t.Expect(ids(t.claim(ctx, s, sending(0), 1, t.harness.Tick/2))).To(Equal([]string{second.ID}))
	t.pass(ctx, 2*t.harness.Tick)
	t.Expect(ids(t.claim(ctx, s, sending(0), plenty, longLease))).To(Equal([]string{first.ID, second.ID}))
}

func leaseFences(ctx context.Context, t *trial) {
	a, b := t.open(), t.open()
	r := t.due(ctx, a)
	slow := t.claim(ctx, a, sending(longLease), 1, t.harness.Tick/2)
	t.Expect(ids(slow)).To(Equal([]string{r.ID}))
	t.pass(ctx, t.harness.Tick)
	quick := t.claim(ctx, b, sending(longLease), 1, longLease)
	t.Expect(ids(quick)).To(Equal([]string{r.ID}))
	t.Expect(quick[0].Epoch).To(BeNumerically(">", slow[0].Epoch))

	late := func() {
		for _, m := range []mutation{delivered(slow[0]), failed(slow[0], time.Time{})} {
			before := t.get(ctx, b, r.ID)
			returned, err := a.Update(ctx, r.ID, m)
			t.Expect(err).To(MatchError(verification.ErrLeaseLost))
			t.Expect(returned).To(be(before))
			t.Expect(t.get(ctx, a, r.ID)).To(be(before))
		}
		t.Expect(a.Delete(ctx, r.ID, slow[0].Version)).To(MatchError(verification.ErrConflict))
	}
	late()
	done := t.update(ctx, b, r.ID, delivered(quick[0]))
	t.Expect(done.Delivery.Attempts).To(Equal(1))
	late()
}

func leaseEndsEarly(ctx context.Context, t *trial) {
	s := t.open()
	r := t.due(ctx, s)
	for attempt := range 3 {
		claims := t.claim(ctx, s, sending(longLease), plenty, longLease)
		t.Expect(ids(claims)).To(Equal([]string{r.ID}))
		t.Expect(claims[0].Delivery.Attempts).To(Equal(attempt))
		t.update(ctx, s, r.ID, func(r *verification.Request, now time.Time) error {
			return failed(claims[0], now)(r, now) // to be repeated at once
		})
	}
	claims := t.claim(ctx, s, sending(longLease), plenty, longLease)
	t.Expect(ids(claims)).To(Equal([]string{r.ID}))
	t.update(ctx, s, r.ID, func(r *verification.Request, now time.Time) error {
		return failed(claims[0], now.Add(longLease/2))(r, now)
	})
	t.Expect(t.claim(ctx, s, sending(longLease), plenty, longLease)).To(BeEmpty(), "the next attempt is not due")
	if t.stepped() {
		t.pass(ctx, longLease/2)
		t.Expect(ids(t.claim(ctx, s, sending(longLease), plenty, longLease))).To(Equal([]string{r.ID}))
	}
}

func leaseCounts(ctx context.Context, t *trial) {
	s := t.open()
	r := t.create(ctx, s, t.lasting())
	t.Expect(r.Epoch).To(BeZero())
	t.Expect(t.update(ctx, s, r.ID, bind("sender")).Epoch).To(BeZero())
	t.Expect(t.update(ctx, s, r.ID, verify(true)).Epoch).To(BeZero())
	version := t.get(ctx, s, r.ID).Version
	for epoch := range int64(3) {
		claims := t.claim(ctx, s, sending(longLease), plenty, longLease)
		t.Expect(ids(claims)).To(Equal([]string{r.ID}))
		t.Expect(claims[0].Epoch).To(Equal(epoch + 1))
		t.Expect(claims[0].Version).NotTo(Equal(version), "a claim is a write")
		written := t.update(ctx, s, r.ID, func(r *verification.Request, now time.Time) error {
			return failed(claims[0], now)(r, now)
		})
		t.Expect(written.Epoch).To(Equal(epoch + 1))
		version = written.Version
	}
}
