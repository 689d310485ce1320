package storetest

import (
	"context"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func leaseChecks() []check {
	return []check{
		{name: "keep work from others until they end", needs: Queue, run: repeatIfSlow(leaseHolds)},
		{name: "end neither early nor late", needs: Queue | SteppedClock, run: leaseEnds},
		{name: "return work in its original order when they end", needs: Queue, run: repeatIfSlow(leaseOrder)},
		{name: "fence off a holder whose lease has ended", needs: Queue, run: leaseFences},
		{name: "end with the step they were claimed for", needs: Queue, run: leaseEndsEarly},
		{name: "end when they are released, unless they were granted again", needs: Queue, run: leaseReleases},
		{name: "go on through a write that leaves the work as it is", needs: Queue, run: leaseOutlivesOtherWrites},
		{name: "count an epoch for each claim, none for other writes", needs: Queue, run: leaseCounts},
	}
}

func (t *trial) createDue(ctx context.Context, s verification.Store) verification.Request {
	return t.updateRequest(ctx, s, t.createRequest(ctx, s, t.newLasting()).ID, verifyClaimed(true))
}

func leaseHolds(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	short, long := t.createDue(ctx, a), t.createDue(ctx, a)
	claimed := requestIDs(t.claimWork(ctx, a, sendingPolicy(0), 1, t.harness.Tick))
	if len(claimed) == 1 && claimed[0] == long.ID { // the store clock may have been corrected between the two
		short, long = long, short
	}
	t.Expect(claimed).To(Equal([]string{short.ID}))
	t.Expect(requestIDs(t.claimWork(ctx, b, sendingPolicy(0), manyRequests, longLease))).To(Equal([]string{long.ID}))
	t.Expect(t.claimWork(ctx, b, sendingPolicy(0), manyRequests, longLease)).NotTo(ContainElement(HaveField("ID", long.ID)))
	t.passTime(ctx, t.harness.Tick)
	t.Expect(requestIDs(t.claimWork(ctx, b, sendingPolicy(0), manyRequests, longLease))).To(Or(Equal([]string{short.ID}), BeEmpty()))
	t.Expect(t.claimWork(ctx, a, sendingPolicy(0), manyRequests, longLease)).To(BeEmpty())
	t.Expect(t.getRequest(ctx, a, short.ID).Epoch).To(BeEquivalentTo(2), "the ended lease was granted again")
	t.Expect(t.getRequest(ctx, a, long.ID).Epoch).To(BeEquivalentTo(1), "the other lease was not")
}

func leaseEnds(ctx context.Context, t *trial) {
	s := t.openReplica()
	r := t.createDue(ctx, s)
	const lease = 30 * time.Second
	for range 3 {
		t.Expect(requestIDs(t.claimWork(ctx, s, sendingPolicy(0), manyRequests, lease))).To(Equal([]string{r.ID}))
		t.passTime(ctx, lease-time.Microsecond)
		t.Expect(t.claimWork(ctx, s, sendingPolicy(0), manyRequests, lease)).To(BeEmpty())
		t.passTime(ctx, time.Microsecond)
	}
}

// leaseOrder lets the leases of two requests end in the reverse of their due order.
func leaseOrder(ctx context.Context, t *trial) {
	s := t.openReplica()
	first, second := t.createDue(ctx, s), t.createRequest(ctx, s, t.newLasting())
	t.passMoment(ctx)
	t.updateRequest(ctx, s, second.ID, verifyClaimed(true))
	t.Expect(requestIDs(t.claimWork(ctx, s, sendingPolicy(0), 1, t.harness.Tick))).To(Equal([]string{first.ID}))
	t.Expect(requestIDs(t.claimWork(ctx, s, sendingPolicy(0), 1, t.harness.Tick/2))).To(Equal([]string{second.ID}))
	t.passTime(ctx, 2*t.harness.Tick)
	t.Expect(requestIDs(t.claimWork(ctx, s, sendingPolicy(0), manyRequests, longLease))).To(Equal([]string{first.ID, second.ID}))
}

func leaseFences(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	r := t.createDue(ctx, a)
	slow := t.claimWork(ctx, a, sendingPolicy(longLease), 1, t.harness.Tick/2)
	t.Expect(requestIDs(slow)).To(Equal([]string{r.ID}))
	t.passTime(ctx, t.harness.Tick)
	quick := t.claimWork(ctx, b, sendingPolicy(longLease), 1, longLease)
	t.Expect(requestIDs(quick)).To(Equal([]string{r.ID}))
	t.Expect(quick[0].Epoch).To(BeNumerically(">", slow[0].Epoch))

	late := func() {
		for _, m := range []mutation{recordDelivered(slow[0]), recordFailed(slow[0], time.Time{})} {
			before := t.getRequest(ctx, b, r.ID)
			returned, err := a.Update(ctx, r.ID, m)
			t.Expect(err).To(MatchError(verification.ErrLeaseLost))
			t.Expect(returned).To(equalRequest(before))
			t.Expect(t.getRequest(ctx, a, r.ID)).To(equalRequest(before))
		}
		t.Expect(a.Delete(ctx, r.ID, slow[0].Version)).To(MatchError(verification.ErrConflict))
	}
	late()
	done := t.updateRequest(ctx, b, r.ID, recordDelivered(quick[0]))
	t.Expect(done.Delivery.Attempts).To(Equal(1))
	late()
}

func leaseEndsEarly(ctx context.Context, t *trial) {
	s := t.openReplica()
	r := t.createDue(ctx, s)
	for attempt := range 3 {
		claims := t.claimWork(ctx, s, sendingPolicy(longLease), manyRequests, longLease)
		t.Expect(requestIDs(claims)).To(Equal([]string{r.ID}))
		t.Expect(claims[0].Delivery.Attempts).To(Equal(attempt))
		t.updateRequest(ctx, s, r.ID, func(r *verification.Request, now time.Time) error {
			return recordFailed(claims[0], now)(r, now) // due again at once
		})
	}
	claims := t.claimWork(ctx, s, sendingPolicy(longLease), manyRequests, longLease)
	t.Expect(requestIDs(claims)).To(Equal([]string{r.ID}))
	t.updateRequest(ctx, s, r.ID, func(r *verification.Request, now time.Time) error {
		return recordFailed(claims[0], now.Add(longLease/2))(r, now)
	})
	t.Expect(t.claimWork(ctx, s, sendingPolicy(longLease), manyRequests, longLease)).To(BeEmpty(), "the next attempt is not due")
	if t.hasSteppedClock() {
		t.passTime(ctx, longLease/2)
		t.Expect(requestIDs(t.claimWork(ctx, s, sendingPolicy(longLease), manyRequests, longLease))).To(Equal([]string{r.ID}))
	}
}

// leaseReleases has a worker release its claims twice: another worker has claimed the requests before the second time.
func leaseReleases(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	ids := []string{t.createDue(ctx, a).ID, t.createDue(ctx, a).ID}
	claims := map[string]int64{"unknown": 1}
	for _, r := range t.claimWork(ctx, a, sendingPolicy(longLease), manyRequests, longLease) {
		claims[r.ID] = r.Epoch
	}
	t.Expect(claims).To(HaveLen(3))
	kept := t.createDue(ctx, a).ID
	t.Expect(requestIDs(t.claimWork(ctx, a, sendingPolicy(longLease), manyRequests, longLease))).To(Equal([]string{kept}))
	t.Expect(t.harness.Queue(a).Release(ctx, claims)).To(Succeed())
	t.Expect(requestIDs(t.claimWork(ctx, b, sendingPolicy(longLease), manyRequests, longLease))).To(ConsistOf(ids))
	t.Expect(t.harness.Queue(a).Release(ctx, claims)).To(Succeed())
	t.Expect(t.claimWork(ctx, b, sendingPolicy(longLease), manyRequests, longLease)).To(BeEmpty(), "b has claimed them since")
}

// leaseOutlivesOtherWrites lets a stranger write while the event of a pending request is being sent.
func leaseOutlivesOtherWrites(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	r := t.createRequest(ctx, a, t.newLasting())
	t.updateRequest(ctx, a, r.ID, bindSender("anna"))
	t.updateRequest(ctx, a, r.ID, refuseNumber)
	claims := t.claimWork(ctx, a, sendingPolicy(longLease), manyRequests, longLease)
	t.Expect(requestIDs(claims)).To(Equal([]string{r.ID}))
	t.updateRequest(ctx, b, r.ID, bindSender("bruno"))
	t.Expect(t.claimWork(ctx, b, sendingPolicy(longLease), manyRequests, longLease)).To(BeEmpty(), "the event is being sent")
	t.updateRequest(ctx, b, r.ID, verifyClaimed(true))
	again := t.claimWork(ctx, b, sendingPolicy(longLease), manyRequests, longLease)
	t.Expect(requestIDs(again)).To(Equal([]string{r.ID}), "another event is due")
	_, err := a.Update(ctx, r.ID, recordDelivered(claims[0]))
	t.Expect(err).To(MatchError(verification.ErrLeaseLost))
	t.Expect(t.updateRequest(ctx, b, r.ID, recordDelivered(again[0])).Delivery.Attempts).To(Equal(1))
}

func leaseCounts(ctx context.Context, t *trial) {
	s := t.openReplica()
	r := t.createRequest(ctx, s, t.newLasting())
	t.Expect(r.Epoch).To(BeZero())
	t.Expect(t.updateRequest(ctx, s, r.ID, bindSender("sender")).Epoch).To(BeZero())
	t.Expect(t.updateRequest(ctx, s, r.ID, verifyClaimed(true)).Epoch).To(BeZero())
	version := t.getRequest(ctx, s, r.ID).Version
	for epoch := range int64(3) {
		claims := t.claimWork(ctx, s, sendingPolicy(longLease), manyRequests, longLease)
		t.Expect(requestIDs(claims)).To(Equal([]string{r.ID}))
		t.Expect(claims[0].Epoch).To(Equal(epoch + 1))
		t.Expect(claims[0].Version).NotTo(Equal(version), "a claim is a write")
		written := t.updateRequest(ctx, s, r.ID, func(r *verification.Request, now time.Time) error {
			return recordFailed(claims[0], now)(r, now)
		})
		t.Expect(written.Epoch).To(Equal(epoch + 1))
		version = written.Version
	}
}
