package storetest

import (
	"context"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// plenty is a limit, and a lease, that no check reaches.
const (
	plenty    = 1000
	longLease = time.Hour
)

func queue() []check {
	return []check{
		{name: "hands out due work, the longest overdue first", needs: aQueue, run: queueOrder},
		{name: "hands out nothing before its time", needs: aQueue, run: queueNotYet},
		{name: "hands work out at its very time", needs: aQueue | aSteppedClock, run: queueOnTime},
		{name: "hands out the current state", needs: aQueue, run: queueCurrent},
		{name: "hands out work of its own project alone", needs: aQueue, run: queueProject},
		{name: "hands out no event while events are paused", needs: aQueue, run: queuePaused},
		{name: "hands out what is to be deleted once retention ends", needs: aQueue, run: queueRetention},
		{name: "hands out no code that can come back until it has rested", needs: aQueue | aSteppedClock, run: queueLetsRest},
		{name: "hands each of 500 due requests to one of many workers", needs: aQueue, run: queueRaced},
		{name: "hands out every step of a life", needs: aQueue, run: queueLife},
	}
}

func sending(retention time.Duration) verification.Policy {
	return verification.Policy{Retention: retention, Events: verification.EventsOn}
}

// claim claims through the store's queue.
func (t *trial) claim(
	ctx context.Context, s verification.Store, p verification.Policy, limit int, lease time.Duration,
) []verification.Request {
	ginkgo.GinkgoHelper()
	claims, err := t.harness.Queue(s).Claim(ctx, p, limit, lease)
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(len(claims)).To(BeNumerically("<=", limit))
	return claims
}

func ids(requests []verification.Request) []string {
	list := make([]string, len(requests))
	for i, r := range requests {
		list[i] = r.ID
	}
	return list
}

// queueOrder makes all three kinds of work, in an order that is neither that of creation nor that of ids.
func queueOrder(ctx context.Context, t *trial) {
	a, b := t.open(), t.open()
	want := make([]string, 12)
	for i := range want {
		at := (i * 5) % len(want)
		want[at] = t.workSince(ctx, []verification.Store{a, b}[i%2], at)
	}
	t.lapse()
	var got []string
	for range 3 {
		got = append(got, ids(t.claim(ctx, b, sending(0), 5, longLease))...)
	}
	t.Expect(got).To(Equal(want))
	t.Expect(t.claim(ctx, a, sending(0), plenty, longLease)).To(BeEmpty())
}

// workSince makes work that is due after lapse, of a lower order the longer.
func (t *trial) workSince(ctx context.Context, s verification.Store, order int) string {
	r := t.create(ctx, s, t.lapsing(order))
	if order%3 == 0 {
		return r.ID // to be expired
	}
	since := r.ExpiresAt.Add(verification.ExpiryGrace)
	t.update(ctx, s, r.ID, func(r *verification.Request, _ time.Time) error {
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
	s := t.open()
	t.create(ctx, s, t.lasting())
	t.update(ctx, s, t.create(ctx, s, t.new()).ID, dueIn(longLease))
	t.update(ctx, s, t.create(ctx, s, t.new()).ID, settled(0))
	t.update(ctx, s, t.create(ctx, s, t.new()).ID, verify(false))
	t.Expect(t.claim(ctx, s, sending(longLease), plenty, longLease)).To(BeEmpty())
	due := t.create(ctx, s, t.new()).ID
	t.update(ctx, s, due, verify(true))
	t.Expect(ids(t.claim(ctx, s, sending(longLease), plenty, longLease))).To(Equal([]string{due}))
	t.Expect(t.claim(ctx, s, sending(longLease), 0, longLease)).To(BeEmpty())
}

func queueOnTime(ctx context.Context, t *trial) {
	s := t.open()
	const retention = time.Hour
	pending := t.create(ctx, s, t.new()).ID
	event := t.create(ctx, s, t.new()).ID
	t.update(ctx, s, event, dueIn(20*time.Minute))
	done := t.create(ctx, s, t.new()).ID
	t.update(ctx, s, done, settled(0))
	passed := time.Duration(0)
	for _, due := range []struct {
		id string
		in time.Duration
	}{{pending, 10*time.Minute + verification.ExpiryGrace}, {event, 20 * time.Minute}, {done, retention}} {
		t.pass(ctx, due.in-passed-time.Microsecond)
		t.Expect(t.claim(ctx, s, sending(retention), plenty, 24*time.Hour)).To(BeEmpty())
		t.pass(ctx, time.Microsecond)
		passed = due.in
		t.Expect(ids(t.claim(ctx, s, sending(retention), plenty, 24*time.Hour))).To(Equal([]string{due.id}))
	}
}

func queueCurrent(ctx context.Context, t *trial) {
	a, b := t.open(), t.open()
	r := t.create(ctx, a, t.new())
	t.bound(ctx, a, r.ID, "sender")
	before := t.update(ctx, b, r.ID, verify(true))
	claims := t.claim(ctx, a, sending(0), plenty, longLease)
	t.Expect(claims).To(HaveLen(1))
	want := before
	want.Epoch++
	t.Expect(claims[0]).To(be(want, ignoringVersion))
	t.Expect(t.get(ctx, b, r.ID)).To(be(claims[0]), "the claim is part of the state")
	t.Expect(b.Awaiting(ctx, "sender")).To(be(claims[0]))
	claims[0].Contacts[0].Binding = "spoiled"
	t.Expect(t.get(ctx, a, r.ID).Contacts[0].Binding).To(Equal("sender"))
	t.Expect(b.Delete(ctx, r.ID, claims[0].Version)).To(Succeed(), "a claim's version is the current one")
	t.gone(ctx, a, r.ID)
}

func queueProject(ctx context.Context, t *trial) {
	mine := t.open()
	for _, name := range []string{newProject().Name(), t.project.Name() + "-2"} {
		theirs := t.harness.Open(name)
		id := t.create(ctx, theirs, t.new()).ID
		t.update(ctx, theirs, id, verify(true))
		t.Expect(t.claim(ctx, mine, sending(0), plenty, longLease)).To(BeEmpty())
		t.Expect(ids(t.claim(ctx, theirs, sending(0), plenty, longLease))).To(Equal([]string{id}))
	}
}

func queuePaused(ctx context.Context, t *trial) {
	s := t.open()
	const retention = time.Hour
	event := t.create(ctx, s, t.new()).ID
	before := t.update(ctx, s, event, dueIn(-time.Second))
	lapsed := t.create(ctx, s, t.lapsing(0)).ID
	t.lapse()
	paused := verification.Policy{Retention: retention, Events: verification.EventsPaused}
	for range 3 {
		for _, claim := range t.claim(ctx, s, paused, plenty, longLease) {
			t.Expect(claim.ID).To(Equal(lapsed), "an event that is paused needs no step")
		}
	}
	t.Expect(t.get(ctx, s, event)).To(be(before))

	off := verification.Policy{Retention: 2 * retention, Events: verification.EventsOff}
	t.Expect(t.claim(ctx, s, off, plenty, longLease)).To(BeEmpty())
	t.Expect(ids(t.claim(ctx, s, sending(retention), plenty, 0))).To(Equal([]string{event}), "at once when it may go on")
	t.Expect(t.claim(ctx, s, verification.Policy{Events: verification.EventsOff}, plenty, longLease)).
		To(BeEmpty(), "kept, in case the webhook is set again")
}

func queueRetention(ctx context.Context, t *trial) {
	s := t.open()
	const retention = 3 * time.Hour
	old, young := t.create(ctx, s, t.new()).ID, t.create(ctx, s, t.new()).ID
	t.update(ctx, s, old, settled(retention))
	t.update(ctx, s, young, settled(retention-longLease))
	claims := t.claim(ctx, s, sending(retention), plenty, longLease)
	t.Expect(ids(claims)).To(Equal([]string{old}))
	t.Expect(s.Delete(ctx, old, claims[0].Version)).To(Succeed())
	t.Expect(t.claim(ctx, s, sending(retention), plenty, longLease)).To(BeEmpty())
	t.Expect(ids(t.claim(ctx, s, sending(time.Hour), plenty, longLease))).To(Equal([]string{young}), "retention was shortened")
}

func queueLetsRest(ctx context.Context, t *trial) {
	s := t.open()
	const retention = time.Minute
	verified, expired := t.create(ctx, s, t.keyed()), t.create(ctx, s, t.keyed())
	t.update(ctx, s, verified.ID, verify(false))
	t.pass(ctx, expired.ExpiresAt.Add(verification.ExpiryGrace).Sub(t.clock(ctx, s, expired.ID)))
	t.update(ctx, s, expired.ID, expire)
	end := expired.ExpiresAt.Add(verification.CodeRest + retention)
	t.pass(ctx, end.Sub(t.clock(ctx, s, expired.ID))-time.Microsecond)
	t.Expect(t.claim(ctx, s, sending(retention), plenty, longLease)).To(BeEmpty())
	t.pass(ctx, time.Microsecond)
	t.Expect(ids(t.claim(ctx, s, sending(retention), plenty, longLease))).To(ConsistOf(verified.ID, expired.ID))
}

// queueRaced claims with many workers until nothing is left.
func queueRaced(ctx context.Context, t *trial) {
	const due, workers = 500, 8
	stores := t.replicas(4)
	_, errs := race(10, func(i int) (struct{}, error) {
		for range due / 10 {
			r, err := stores[i%4].Create(ctx, t.new(), verification.Limits{})
			if err != nil {
				return struct{}{}, err
			}
			if _, err = stores[i%4].Update(ctx, r.Request.ID, verify(true)); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, nil
	})
	t.Expect(errs).To(HaveEach(BeNil()))

	claims, errs := race(workers, func(i int) ([]string, error) {
		var mine []string
		for misses := 0; misses < 3 && len(mine) <= due; { // others may hold for a moment what they do not take
			claims, err := t.harness.Queue(stores[i%4]).Claim(ctx, sending(longLease), 7, longLease)
			if err != nil {
				return nil, err
			}
			if len(claims) == 0 {
				misses++
			}
			mine = append(mine, ids(claims)...)
		}
		return mine, nil
	})
	t.Expect(errs).To(HaveEach(BeNil()))
	times := map[string]int{}
	for _, mine := range claims {
		for _, id := range mine {
			times[id]++
		}
	}
	t.Expect(times).To(HaveLen(due), "none is lost")
	t.Expect(times).To(HaveEach(1), "none is handed out twice")
}

// queueLife does what a loop does until every request is deleted.
func queueLife(ctx context.Context, t *trial) {
	s := t.open()
	verified, lapsed := t.create(ctx, s, t.lasting()), t.create(ctx, s, t.lapsing(0))
	t.update(ctx, s, verified.ID, verify(true))
	t.lapse()
	steps := map[string][]verification.Step{}
	for range 6 {
		for _, claim := range t.claim(ctx, s, sending(0), 1, longLease) {
			action := verification.Next(&claim, t.clock(ctx, s, claim.ID), sending(0))
			steps[claim.ID] = append(steps[claim.ID], action.Step)
			switch action.Step {
			case verification.StepExpire:
				t.update(ctx, s, claim.ID, expire)
			case verification.StepDeliver:
				t.update(ctx, s, claim.ID, delivered(claim))
			case verification.StepDelete:
				t.Expect(s.Delete(ctx, claim.ID, claim.Version)).To(Succeed())
			case verification.StepWait:
				t.Expect(action).To(BeZero(), "work that was handed out needs a step")
			}
		}
	}
	t.Expect(steps).To(Equal(map[string][]verification.Step{
		verified.ID: {verification.StepDeliver, verification.StepDelete},
		lapsed.ID:   {verification.StepExpire, verification.StepDelete},
	}))
}
