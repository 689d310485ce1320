package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// A limit and a lease that no check reaches.
const (
	manyRequests = 1000
	longLease    = time.Hour
)

func queueChecks() []check {
	return []check{
		{name: "hands out due work, the longest overdue first", needs: Queue, run: queueOrder},
		{name: "hands out nothing before its time", needs: Queue, run: queueNotYet},
		{name: "hands out work exactly when it is due", needs: Queue | SteppedClock, run: queueOnTime},
		{name: "hands out the current state", needs: Queue, run: queueCurrent},
		{name: "hands out work of its own project only", needs: Queue, run: queueProject},
		{name: "hands out no event while events are paused", needs: Queue, run: queuePaused},
		{name: "hands out each event that waits once more after a repair", needs: Queue, run: queueRepaired},
		{name: "hands out deletions once retention ends", needs: Queue, run: queueRetention},
		{name: "hands out no code that can come back until it has rested", needs: Queue | SteppedClock, run: queueKeepsResting},
		{name: "hands each of 500 due requests to one of many workers", needs: Queue, run: queueRaced},
		{name: "hands out every step of a lifecycle", needs: Queue, run: queueLife},
	}
}

func sendingPolicy(retention time.Duration) verification.Policy {
	return verification.Policy{Retention: retention, Events: verification.EventsOn}
}

// claimWork claims through the store's queue.
func (t *trial) claimWork(
	ctx context.Context, s verification.Store, p verification.Policy, limit int, lease time.Duration,
) []verification.Request {
	ginkgo.GinkgoHelper()
	claims, err := t.harness.Queue(s).Claim(ctx, p, limit, lease)
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(len(claims)).To(BeNumerically("<=", limit))
	return claims
}

func requestIDs(requests []verification.Request) []string {
	list := make([]string, len(requests))
	for i, r := range requests {
		list[i] = r.ID
	}
	return list
}

// queueOrder creates all three kinds of work, in an order that differs from those of creation and of ids.
func queueOrder(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	want := make([]string, 12)
	for i := range want {
		at := (i * 5) % len(want)
		want[at] = t.createWork(ctx, []verification.Store{a, b}[i%2], at)
	}
	t.lapseRequests()
	var got []string
	for range 3 {
		got = append(got, requestIDs(t.claimWork(ctx, b, sendingPolicy(0), 5, longLease))...)
	}
	t.Expect(got).To(Equal(want))
	t.Expect(t.claimWork(ctx, a, sendingPolicy(0), manyRequests, longLease)).To(BeEmpty())
}

// createWork creates work that is due after lapseRequests, and returns its id; a lower order is longer overdue.
func (t *trial) createWork(ctx context.Context, s verification.Store, order int) string {
	r := t.createRequest(ctx, s, t.newLapsing(order))
	if order%3 == 0 {
		return r.ID // to be expired
	}
	since := r.ExpiresAt.Add(verification.ExpiryGrace)
	t.updateRequest(ctx, s, r.ID, func(r *verification.Request, _ time.Time) error {
		r.Phase, r.VerifiedAt, r.Actual = verification.Verified, since, r.Phone
		if order%3 == 1 {
			r.Delivery.NextAttemptAt = since // to be delivered
		} else {
			r.Delivery = verification.Delivery{Attempts: 1, LastAttemptAt: since, DeliveredAt: since} // to be deleted
		}
		return nil
	})
	return r.ID
}

func queueNotYet(ctx context.Context, t *trial) {
	s := t.openReplica()
	t.createRequest(ctx, s, t.newLasting())
	t.updateRequest(ctx, s, t.createRequest(ctx, s, t.newCreation()).ID, dueIn(longLease))
	t.updateRequest(ctx, s, t.createRequest(ctx, s, t.newCreation()).ID, deliveredBefore(0))
	t.updateRequest(ctx, s, t.createRequest(ctx, s, t.newCreation()).ID, verifyClaimed(false))
	t.Expect(t.claimWork(ctx, s, sendingPolicy(longLease), manyRequests, longLease)).To(BeEmpty())
	due := t.createRequest(ctx, s, t.newCreation()).ID
	t.updateRequest(ctx, s, due, verifyClaimed(true))
	t.Expect(requestIDs(t.claimWork(ctx, s, sendingPolicy(longLease), manyRequests, longLease))).To(Equal([]string{due}))
	t.Expect(t.claimWork(ctx, s, sendingPolicy(longLease), 0, longLease)).To(BeEmpty())
}

func queueOnTime(ctx context.Context, t *trial) {
	s := t.openReplica()
	const retention = time.Hour
	pending := t.createRequest(ctx, s, t.newCreation()).ID
	event := t.createRequest(ctx, s, t.newCreation()).ID
	t.updateRequest(ctx, s, event, dueIn(20*time.Minute))
	done := t.createRequest(ctx, s, t.newCreation()).ID
	t.updateRequest(ctx, s, done, deliveredBefore(0))
	passed := time.Duration(0)
	for _, due := range []struct {
		id string
		in time.Duration
	}{{pending, 10*time.Minute + verification.ExpiryGrace}, {event, 20 * time.Minute}, {done, retention}} {
		t.passTime(ctx, due.in-passed-time.Microsecond)
		t.Expect(t.claimWork(ctx, s, sendingPolicy(retention), manyRequests, 24*time.Hour)).To(BeEmpty())
		t.passTime(ctx, time.Microsecond)
		passed = due.in
		t.Expect(requestIDs(t.claimWork(ctx, s, sendingPolicy(retention), manyRequests, 24*time.Hour))).To(Equal([]string{due.id}))
	}
}

func queueCurrent(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	r := t.createRequest(ctx, a, t.newCreation())
	t.bindLater(ctx, a, r.ID, "sender")
	before := t.updateRequest(ctx, b, r.ID, verifyClaimed(true))
	claims := t.claimWork(ctx, a, sendingPolicy(0), manyRequests, longLease)
	t.Expect(claims).To(HaveLen(1))
	want := before
	want.Epoch++
	t.Expect(claims[0]).To(equalRequest(want, ignoringVersion))
	t.Expect(t.getRequest(ctx, b, r.ID)).To(equalRequest(claims[0]), "the claim is part of the state")
	t.Expect(b.Awaiting(ctx, "sender")).To(equalRequest(claims[0]))
	claims[0].Contacts[0].Binding = "spoiled"
	t.Expect(t.getRequest(ctx, a, r.ID).Contacts[0].Binding).To(Equal("sender"))
	t.Expect(b.Delete(ctx, r.ID, claims[0].Version)).To(Succeed(), "a claim's version is the current one")
	t.expectGone(ctx, a, r.ID)
}

func queueProject(ctx context.Context, t *trial) {
	own := t.openReplica()
	for _, name := range []string{newProject().Name(), t.project.Name() + "-2"} {
		foreign := t.harness.Open(name)
		id := t.createRequest(ctx, foreign, t.newCreation()).ID
		t.updateRequest(ctx, foreign, id, verifyClaimed(true))
		t.Expect(t.claimWork(ctx, own, sendingPolicy(0), manyRequests, longLease)).To(BeEmpty())
		t.Expect(requestIDs(t.claimWork(ctx, foreign, sendingPolicy(0), manyRequests, longLease))).To(Equal([]string{id}))
	}
}

func queuePaused(ctx context.Context, t *trial) {
	s := t.openReplica()
	const retention = time.Hour
	event := t.createRequest(ctx, s, t.newCreation()).ID
	before := t.updateRequest(ctx, s, event, dueIn(-time.Second))
	lapsed := t.createRequest(ctx, s, t.newLapsing(0)).ID
	t.lapseRequests()
	paused := verification.Policy{Retention: retention, Events: verification.EventsPaused}
	for range 3 {
		for _, claim := range t.claimWork(ctx, s, paused, manyRequests, longLease) {
			t.Expect(claim.ID).To(Equal(lapsed), "a paused event needs no step")
		}
	}
	t.Expect(t.getRequest(ctx, s, event)).To(equalRequest(before))

	off := verification.Policy{Retention: 2 * retention, Events: verification.EventsOff}
	t.Expect(t.claimWork(ctx, s, off, manyRequests, longLease)).To(BeEmpty())
	t.Expect(requestIDs(t.claimWork(ctx, s, sendingPolicy(retention), manyRequests, 0))).
		To(Equal([]string{event}), "due at once after the pause")
	t.Expect(t.claimWork(ctx, s, verification.Policy{Events: verification.EventsOff}, manyRequests, longLease)).
		To(BeEmpty(), "kept in case the webhook is configured again")
}

// queueRepaired stores events that wait since before a repair, and others that have no extra attempt.
func queueRepaired(ctx context.Context, t *trial) {
	s := t.openReplica()
	var now time.Time
	store := func(n verification.New, d func(now time.Time) verification.Delivery) string {
		id := t.createRequest(ctx, s, n).ID
		t.updateRequest(ctx, s, id, func(r *verification.Request, at time.Time) error {
			now = at
			if n.TTL == verification.MaxTTL {
				return refuseNumber(r, at)
			}
			return verifyClaimed(true)(r, at)
		})
		t.updateRequest(ctx, s, id, func(r *verification.Request, at time.Time) error {
			r.Delivery = d(at)
			return nil
		})
		return id
	}
	waits := func(since, until, extraFrom time.Duration) func(time.Time) verification.Delivery {
		return func(now time.Time) verification.Delivery {
			d := verification.Delivery{Attempts: 3, LastAttemptAt: now.Add(-since), NextAttemptAt: now.Add(until)}
			if extraFrom != 0 {
				d.ExtraFrom = now.Add(extraFrom)
			}
			return d
		}
	}
	waiting := store(t.newCreation(), waits(time.Hour, time.Hour, 0))
	asked := store(t.newCreation(), waits(time.Hour, time.Hour, -time.Minute))
	attention := t.newLasting()
	attention.TTL = verification.MaxTTL
	pending := store(attention, waits(time.Hour, 30*time.Minute, 0))
	store(t.newCreation(), waits(-time.Minute, time.Hour, 0))      // tried since
	store(t.newCreation(), waits(time.Hour, time.Hour, longLease)) // asked for a longer wait
	store(t.newCreation(), waits(time.Hour, 30*time.Second, 0))    // due soon
	due := store(t.newCreation(), waits(time.Hour, -time.Second, 0))

	policy := sendingPolicy(longLease)
	policy.Repaired, policy.Events = now.Add(-10*time.Second), verification.EventsPaused
	t.Expect(t.claimWork(ctx, s, policy, manyRequests, longLease)).To(BeEmpty(), "paused")
	policy.Events = verification.EventsOn
	before := t.getRequest(ctx, s, waiting).Delivery
	claims := t.claimWork(ctx, s, policy, manyRequests, longLease)
	t.Expect(requestIDs(claims)).To(ConsistOf(waiting, asked, pending, due))
	for _, claim := range claims {
		t.Expect(verification.Next(&claim, t.readClock(ctx, s, claim.ID), policy).Step).To(Equal(verification.StepDeliver))
		t.updateRequest(ctx, s, claim.ID, func(r *verification.Request, now time.Time) error {
			a := verification.Attempt{
				Event: r.Event(), Number: 4, Epoch: claim.Epoch, At: now, StatusCode: 500, Reason: "status", Next: now.Add(time.Hour),
			}
			if claim.Delivery.NextAttemptAt.After(now) {
				a.After, a.Next = claim.Delivery.LastAttemptAt, claim.Delivery.NextAttemptAt
			}
			return r.RecordAttempt(a)
		})
	}
	t.Expect(t.claimWork(ctx, s, policy, manyRequests, longLease)).To(BeEmpty(), "once")
	t.Expect(t.getRequest(ctx, s, waiting).Delivery).To(And(HaveField("Attempts", 3), HaveField("NextAttemptAt", before.NextAttemptAt)))
}

func queueRetention(ctx context.Context, t *trial) {
	s := t.openReplica()
	const retention = 3 * time.Hour
	old, young := t.createRequest(ctx, s, t.newCreation()).ID, t.createRequest(ctx, s, t.newCreation()).ID
	t.updateRequest(ctx, s, old, deliveredBefore(retention))
	t.updateRequest(ctx, s, young, deliveredBefore(retention-longLease))
	claims := t.claimWork(ctx, s, sendingPolicy(retention), manyRequests, longLease)
	t.Expect(requestIDs(claims)).To(Equal([]string{old}))
	t.Expect(s.Delete(ctx, old, claims[0].Version)).To(Succeed())
	t.Expect(t.claimWork(ctx, s, sendingPolicy(retention), manyRequests, longLease)).To(BeEmpty())
	t.Expect(requestIDs(t.claimWork(ctx, s, sendingPolicy(time.Hour), manyRequests, longLease))).
		To(Equal([]string{young}), "retention was shortened")
}

func queueKeepsResting(ctx context.Context, t *trial) {
	s := t.openReplica()
	const retention = time.Minute
	verified, expired := t.createRequest(ctx, s, t.newKeyed()), t.createRequest(ctx, s, t.newKeyed())
	t.updateRequest(ctx, s, verified.ID, verifyClaimed(false))
	t.passTime(ctx, expired.ExpiresAt.Add(verification.ExpiryGrace).Sub(t.readClock(ctx, s, expired.ID)))
	t.updateRequest(ctx, s, expired.ID, expireLapsed)
	end := expired.ExpiresAt.Add(verification.CodeRest + retention)
	t.passTime(ctx, end.Sub(t.readClock(ctx, s, expired.ID))-time.Microsecond)
	t.Expect(t.claimWork(ctx, s, sendingPolicy(retention), manyRequests, longLease)).To(BeEmpty())
	t.passTime(ctx, time.Microsecond)
	t.Expect(requestIDs(t.claimWork(ctx, s, sendingPolicy(retention), manyRequests, longLease))).To(ConsistOf(verified.ID, expired.ID))
}

// queueRaced claims with many workers until no work is left.
func queueRaced(ctx context.Context, t *trial) {
	const due, workers = 500, 8
	stores := t.openReplicas(4)
	_, errs := runRacers(10, func(i int) (struct{}, error) {
		for range due / 10 {
			r, err := stores[i%4].Create(ctx, t.newCreation(), verification.Limits{})
			if err != nil {
				return struct{}{}, fmt.Errorf("create request: %w", err)
			}
			if _, err = stores[i%4].Update(ctx, r.Request.ID, verifyClaimed(true)); err != nil {
				return struct{}{}, fmt.Errorf("verify request: %w", err)
			}
		}
		return struct{}{}, nil
	})
	t.Expect(errs).To(HaveEach(BeNil()))

	claims, errs := runRacers(workers, func(i int) ([]string, error) {
		var own []string
		for misses := 0; misses < 3 && len(own) <= due; { // others may briefly lock work that they do not claim
			claims, err := t.harness.Queue(stores[i%4]).Claim(ctx, sendingPolicy(longLease), 7, longLease)
			if err != nil {
				return nil, fmt.Errorf("claim requests: %w", err)
			}
			if len(claims) == 0 {
				misses++
			}
			own = append(own, requestIDs(claims)...)
		}
		return own, nil
	})
	t.Expect(errs).To(HaveEach(BeNil()))
	times := map[string]int{}
	for _, own := range claims {
		for _, id := range own {
			times[id]++
		}
	}
	t.Expect(times).To(HaveLen(due), "no request is lost")
	t.Expect(times).To(HaveEach(1), "no request is handed out twice")
}

// queueLife executes the steps of claimed work until every request is deleted.
func queueLife(ctx context.Context, t *trial) {
	s := t.openReplica()
	verified, lapsed := t.createRequest(ctx, s, t.newLasting()), t.createRequest(ctx, s, t.newLapsing(0))
	t.updateRequest(ctx, s, verified.ID, verifyClaimed(true))
	t.lapseRequests()
	steps := map[string][]verification.Step{}
	for range 6 {
		for _, claim := range t.claimWork(ctx, s, sendingPolicy(0), 1, longLease) {
			action := verification.Next(&claim, t.readClock(ctx, s, claim.ID), sendingPolicy(0))
			steps[claim.ID] = append(steps[claim.ID], action.Step)
			switch action.Step {
			case verification.StepExpire:
				t.updateRequest(ctx, s, claim.ID, expireLapsed)
			case verification.StepDeliver:
				t.updateRequest(ctx, s, claim.ID, recordDelivered(claim))
			case verification.StepDelete:
				t.Expect(s.Delete(ctx, claim.ID, claim.Version)).To(Succeed())
			case verification.StepWait, verification.StepPlay:
				t.Expect(action).To(BeZero(), "claimed work of a live request needs a step")
			}
		}
	}
	t.Expect(steps).To(Equal(map[string][]verification.Step{
		verified.ID: {verification.StepDeliver, verification.StepDelete},
		lapsed.ID:   {verification.StepExpire, verification.StepDelete},
	}))
}
