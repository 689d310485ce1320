package storetest

import (
	"context"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func eventChecks() []check {
	return []check{
		{name: "keeps what the client gave, through every way to read it", run: keepsClientData},
		{name: "hands out the event of a pending request, and its expiry in time", needs: needsQueue, run: queueAttention},
		{name: "hands out no event of a pending request while events are paused or off", needs: needsQueue, run: queueAttentionPaused},
		{name: "makes the event of an expired request due", needs: needsQueue, run: queueExpired},
		{name: "evicts no lapsed request whose event is still to come", needs: needsCap, run: capKeepsLapsed},
	}
}

// refuseNumber returns the mutation for a message from another number, as the domain stores its hint.
func refuseNumber(r *verification.Request, now time.Time) error {
	r.Hints = append(r.Hints, verification.Hint{Kind: verification.HintOtherNumber, At: now})
	r.Delivery = verification.Delivery{NextAttemptAt: now}
	return nil
}

func keepsClientData(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	n := t.newKeyed()
	n.ClientData = verification.ClientData{
		Reference: "Bestellung \"7\" für Ünal", Locale: "ar", Metadata: map[string]string{"cart": "3", "note": "a\u2028b 🎁", "empty": ""},
	}
	created := t.createRequest(ctx, a, n)
	t.Expect(created.ClientData).To(Equal(n.ClientData))
	created.Metadata["cart"] = "spoiled"
	expectKept := func(r verification.Request) { t.Expect(r.ClientData).To(Equal(n.ClientData)) }
	expectKept(t.getRequest(ctx, b, n.ID))
	expectKept(t.peekRequest(ctx, a, n.ID))
	existing, err := b.Create(ctx, n, verification.Limits{})
	t.Expect(err).NotTo(HaveOccurred())
	expectKept(existing.Request)
	expectKept(t.updateRequest(ctx, b, n.ID, verifyClaimed(true)))
	expectKept(t.getRequest(ctx, a, n.ID))

	plain := t.createRequest(ctx, a, t.newCreation())
	t.Expect(t.getRequest(ctx, b, plain.ID).ClientData).To(BeZero())
	_, err = a.Update(ctx, plain.ID, func(r *verification.Request, _ time.Time) error {
		r.Reference = "spoiled"
		return nil
	})
	t.Expect(err).To(MatchError(verification.ErrContent))
}

func queueAttention(ctx context.Context, t *trial) {
	s := t.openReplica()
	lasting := t.createRequest(ctx, s, t.newLasting()).ID
	lapsing := t.createRequest(ctx, s, t.newLapsing(0)).ID
	for _, id := range []string{lasting, lapsing} {
		t.updateRequest(ctx, s, id, refuseNumber)
	}
	t.lapseRequests()
	claims := t.claimWork(ctx, s, sendingPolicy(time.Hour), manyRequests, longLease)
	t.Expect(requestIDs(claims)).To(ConsistOf(lasting, lapsing))
	for _, claim := range claims {
		step := verification.Next(&claim, t.readClock(ctx, s, claim.ID), sendingPolicy(time.Hour)).Step
		if claim.ID == lapsing {
			t.Expect(step).To(Equal(verification.StepExpire))
			continue
		}
		t.Expect(step).To(Equal(verification.StepDeliver))
		delivered := t.updateRequest(ctx, s, claim.ID, recordDelivered(claim))
		t.Expect(delivered.Phase).To(Equal(verification.Pending))
		t.Expect(delivered.Event().Hint).To(Equal(verification.HintOtherNumber))
	}
	t.Expect(t.claimWork(ctx, s, sendingPolicy(time.Hour), manyRequests, longLease)).To(BeEmpty(), "it waits for its expiry again")
}

func queueAttentionPaused(ctx context.Context, t *trial) {
	s := t.openReplica()
	lasting := t.createRequest(ctx, s, t.newLasting()).ID
	lapsing := t.createRequest(ctx, s, t.newLapsing(0)).ID
	for _, id := range []string{lasting, lapsing} {
		t.updateRequest(ctx, s, id, refuseNumber)
	}
	t.lapseRequests()
	for _, events := range []verification.EventPolicy{verification.EventsPaused, verification.EventsOff} {
		policy := verification.Policy{Retention: time.Hour, Events: events}
		for _, claim := range t.claimWork(ctx, s, policy, manyRequests, 0) {
			t.Expect(claim.ID).To(Equal(lapsing))
		}
	}
	claims := t.claimWork(ctx, s, verification.Policy{Retention: time.Hour}, manyRequests, 0)
	t.Expect(requestIDs(claims)).To(Equal([]string{lapsing}), "an event that is not sent keeps no request from its end")
}

// queueExpired expires one request by a sweep, if the store sweeps, and otherwise as a worker does.
func queueExpired(ctx context.Context, t *trial) {
	s := t.openReplica()
	policy := verification.Policy{Retention: longLease, Events: verification.EventsOn, Kinds: allEvents}
	id := t.createRequest(ctx, s, t.newLapsing(0)).ID
	t.updateRequest(ctx, s, id, refuseNumber)
	t.updateRequest(ctx, s, id, recordDelivered(t.getRequest(ctx, s, id)))
	t.lapseRequests()
	swept, err := t.harness.Queue(s).Sweep(ctx, policy, manyRequests)
	t.Expect(err).NotTo(HaveOccurred())
	if swept.Expired == 0 {
		claims := t.claimWork(ctx, s, policy, manyRequests, longLease)
		t.Expect(requestIDs(claims)).To(Equal([]string{id}))
		t.updateRequest(ctx, s, id, func(r *verification.Request, now time.Time) error { return r.Expire(now, policy.Kinds) })
	}
	claims := t.claimWork(ctx, s, policy, manyRequests, longLease)
	t.Expect(requestIDs(claims)).To(Equal([]string{id}))
	t.Expect(claims[0].Phase).To(Equal(verification.Expired))
	t.Expect(claims[0].Event()).To(Equal(verification.Event{
		Kind: verification.EventExpired, Hint: claims[0].Event().Hint, At: claims[0].ExpiresAt,
	}))
	t.Expect(claims[0].Delivery).To(Equal(verification.Delivery{NextAttemptAt: claims[0].Delivery.NextAttemptAt}),
		"its event has attempts of its own")
	t.Expect(claims[0].Delivery.Wanted()).To(BeTrue())
	t.updateRequest(ctx, s, id, recordDelivered(claims[0]))
	t.Expect(t.claimWork(ctx, s, policy, manyRequests, longLease)).To(BeEmpty(), "kept for its retention")
}

func capKeepsLapsed(ctx context.Context, t *trial) {
	s := t.openReplica()
	first := t.createRequest(ctx, s, t.newLapsing(0))
	t.lapseRequests()
	limits := verification.Limits{MaxStored: 1, KeepLapsed: true}
	t.expectRefused(ctx, s, t.newLasting(), limits, verification.CodeTooManyStored)
	t.updateRequest(ctx, s, first.ID, func(r *verification.Request, now time.Time) error { return r.Expire(now, allEvents) })
	t.expectRefused(ctx, s, t.newLasting(), limits, verification.CodeTooManyStored)
	t.updateRequest(ctx, s, first.ID, recordDelivered(t.getRequest(ctx, s, first.ID)))
	t.expectAdmitted(ctx, s, t.newLasting(), limits)
	t.harness.Settle()
	t.expectGone(ctx, s, first.ID)
}
