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
		{name: "hands out the event of a pending request, and its expiry in time", needs: Queue, run: queueAttention},
		{name: "hands out no event of a pending request while events are paused or off", needs: Queue, run: queueAttentionPaused},
		{name: "makes the event of an expired request due", needs: Queue, run: queueExpired},
		{name: "ends the event of a pending request with it, and then deletes it in time", run: attentionEnds},
		{name: "evicts no lapsed request whose event is still to come", needs: Cap, run: capKeepsLapsed},
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

// attentionEnds ends requests whose events were not delivered, in a project that does not want to hear of their end.
func attentionEnds(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	kinds := verification.NewEventKinds(verification.EventSuccess, verification.EventAttention)
	due, retried := t.createRequest(ctx, a, t.newLapsing(0)), t.createRequest(ctx, a, t.newLapsing(1))
	declined := t.createRequest(ctx, a, t.newCreation())
	t.updateRequest(ctx, a, due.ID, refuseNumber)
	t.updateRequest(ctx, a, retried.ID, refuseNumber)
	t.updateRequest(ctx, a, retried.ID, recordFailed(t.getRequest(ctx, a, retried.ID), retried.ExpiresAt.Add(time.Hour)))
	t.updateRequest(ctx, a, declined.ID, askByEcho("anna", kinds))
	t.Expect(t.getRequest(ctx, b, declined.ID).Delivery.Wanted()).To(BeTrue())
	t.updateRequest(ctx, a, declined.ID, func(r *verification.Request, now time.Time) error {
		tap := verification.Evidence{Method: r.Method, SentAt: now}
		return r.Decline(tap, func(c verification.Contact) bool { return c.Binding == "anna" }, now, kinds)
	})
	t.lapseRequests()
	t.expireLapsedRequests(ctx, b, kinds, due.ID, retried.ID)

	for id, want := range map[string]verification.Event{
		due.ID:      {Kind: verification.EventExpired},
		retried.ID:  {Kind: verification.EventExpired},
		declined.ID: {Kind: verification.EventDeclined},
	} {
		r := t.getRequest(ctx, a, id)
		t.Expect(r.Event().Kind).To(Equal(want.Kind))
		t.Expect(r.HintAt(r.ExpiresAt.Add(verification.ExpiryGrace))).NotTo(BeEmpty(), "the status has the hint")
		t.Expect(r.Delivery).To(BeZero())
		for _, events := range []verification.EventPolicy{verification.EventsOn, verification.EventsOff, verification.EventsPaused} {
			policy, end := verification.Policy{Retention: time.Hour, Events: events}, r.ExpiresAt.Add(verification.ExpiryGrace+time.Hour)
			t.Expect(verification.Next(&r, end, policy).Step).To(Equal(verification.StepDelete))
			t.Expect(verification.Next(&r, end.Add(-time.Microsecond), policy)).
				To(Equal(verification.Action{Step: verification.StepWait, At: end}))
		}
	}
	deleted := []string{due.ID, retried.ID}
	if t.hasSteppedClock() {
		deleted = append(deleted, declined.ID)
	}
	t.expectOnlyDeletion(ctx, b, kinds, deleted)
}

// expireLapsedRequests expires requests by a sweep, if the store sweeps, and otherwise as a worker does.
func (t *trial) expireLapsedRequests(ctx context.Context, s verification.Store, wanted verification.EventKinds, ids ...string) {
	if t.harness.Queue != nil {
		policy := verification.Policy{Retention: 24 * time.Hour, Events: verification.EventsOn, Kinds: wanted}
		_, err := t.harness.Queue(s).Sweep(ctx, policy, manyRequests)
		t.Expect(err).NotTo(HaveOccurred())
	}
	for _, id := range ids {
		if r := t.getRequest(ctx, s, id); r.Phase == verification.Pending {
			t.updateRequest(ctx, s, id, func(r *verification.Request, now time.Time) error { return r.Expire(now, wanted) })
		}
	}
}

// expectOnlyDeletion expects a queue to hand out nothing but the deletion of requests.
func (t *trial) expectOnlyDeletion(ctx context.Context, s verification.Store, wanted verification.EventKinds, ids []string) {
	if t.harness.Queue == nil {
		return
	}
	policy := verification.Policy{Retention: 24 * time.Hour, Events: verification.EventsOn, Kinds: wanted}
	t.Expect(t.claimWork(ctx, s, policy, manyRequests, 0)).To(BeEmpty(), "kept for its retention")
	policy.Retention = 0
	claims := t.claimWork(ctx, s, policy, manyRequests, longLease)
	t.Expect(requestIDs(claims)).To(ConsistOf(ids))
	for _, claim := range claims {
		t.Expect(verification.Next(&claim, t.readClock(ctx, s, claim.ID), policy).Step).To(Equal(verification.StepDelete))
		t.Expect(s.Delete(ctx, claim.ID, claim.Version)).To(Succeed())
	}
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
