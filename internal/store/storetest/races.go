package storetest

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

const (
	racers = 64
	// rounds is how often a race of two is run: an instant in which both could win must have a chance to come up.
	rounds = 40
)

func races() []check {
	return []check{
		{name: "lets each of 64 racing updates see the one before", run: raceCounts},
		{name: "has one winner among 64 racers for one request", run: raceWins},
		{name: "ends in one final state where a message meets the expiry", run: raceFinal},
		{name: "either deletes or updates where the two meet", run: raceDelete},
		{name: "deletes one state once", run: raceDeletes},
	}
}

// raceCounts has every racer add one to what it sees. A store whose writes overwrite each other counts too few.
func raceCounts(ctx context.Context, t *trial) {
	stores := t.replicas(4)
	id := t.create(ctx, stores[0], t.new()).ID
	t.update(ctx, stores[0], id, verify(true))
	results, errs := race(racers, func(i int) (verification.Request, error) {
		return stores[i%len(stores)].Update(ctx, id, func(r *verification.Request, _ time.Time) error {
			r.Delivery.Attempts++
			return nil
		})
	})
	t.Expect(errs).To(HaveEach(BeNil()))
	t.Expect(t.get(ctx, stores[0], id).Delivery.Attempts).To(Equal(racers))
	counts, versions := map[int]bool{}, map[string]bool{}
	for _, r := range results {
		counts[r.Delivery.Attempts], versions[r.Version] = true, true
	}
	t.Expect(counts).To(HaveLen(racers), "each was answered the state that it wrote")
	t.Expect(versions).To(HaveLen(racers))
}

func raceWins(ctx context.Context, t *trial) {
	stores := t.replicas(4)
	id := t.create(ctx, stores[0], t.new()).ID
	t.update(ctx, stores[0], id, verify(true))
	results, errs := race(racers, func(i int) (verification.Request, error) {
		return stores[i%len(stores)].Update(ctx, id, func(r *verification.Request, _ time.Time) error {
			if r.Delivery.LastReason != "" {
				return errRefused
			}
			r.Delivery.LastReason = fmt.Sprintf("racer %d", i)
			return nil
		})
	})
	stored := t.get(ctx, stores[1], id)
	winners := 0
	for i, err := range errs {
		if err == nil {
			winners++
			t.Expect(stored.Delivery.LastReason).To(Equal(fmt.Sprintf("racer %d", i)))
		} else {
			t.Expect(err).To(MatchError(errRefused))
		}
		t.Expect(results[i]).To(be(stored), "losers are shown who won")
	}
	t.Expect(winners).To(Equal(1), "winners")
}

// raceFinal leaves the clocks out: to replicas whose clocks differ enough, a request may be in time and lapsed at one
// instant. Then nothing but the store's compare-and-set keeps the two final states apart.
func raceFinal(ctx context.Context, t *trial) {
	final := func(phase verification.Phase) mutation {
		return func(r *verification.Request, now time.Time) error {
			if r.Phase.Final() {
				return verification.ErrFinal
			}
			r.Phase = phase
			if phase == verification.Verified {
				r.VerifiedAt, r.Actual, r.Delivery.NextAttemptAt = now, r.Phone, now
			}
			return nil
		}
	}
	stores := t.replicas(4)
	phases := []verification.Phase{verification.Verified, verification.Expired, verification.Verified, verification.Expired}
	for range rounds {
		id := t.create(ctx, stores[0], t.new()).ID
		results, errs := race(len(phases), func(i int) (verification.Request, error) {
			return stores[i].Update(ctx, id, final(phases[i]))
		})
		stored := t.get(ctx, stores[0], id)
		winners := 0
		for i, err := range errs {
			if err == nil {
				winners++
				t.Expect(stored.Phase).To(Equal(phases[i]))
			} else {
				t.Expect(err).To(MatchError(verification.ErrFinal))
			}
			t.Expect(results[i]).To(be(stored))
		}
		t.Expect(winners).To(Equal(1), "final states that were acknowledged")
		t.Expect(stored.Delivery.Wanted()).To(Equal(stored.Phase == verification.Verified))
	}
}

func raceDelete(ctx context.Context, t *trial) {
	a, b := t.open(), t.open()
	for range rounds {
		r := t.create(ctx, a, t.new())
		_, errs := race(2, func(i int) (verification.Request, error) {
			if i == 0 {
				return verification.Request{}, a.Delete(ctx, r.ID, r.Version)
			}
			return b.Update(ctx, r.ID, verify(true))
		})
		if errs[0] == nil {
			t.Expect(errs[1]).To(haveCode(verification.CodeNotFound), "the request was deleted")
			t.gone(ctx, b, r.ID)
			continue
		}
		t.Expect(errs).To(ConsistOf(MatchError(verification.ErrConflict), BeNil()), "the request was updated")
		t.Expect(t.get(ctx, a, r.ID).Phase).To(Equal(verification.Verified))
	}
}

// raceDeletes has deletions of an old state race with one of the current state: none may take the current one along.
func raceDeletes(ctx context.Context, t *trial) {
	stores := t.replicas(4)
	old := t.create(ctx, stores[0], t.new())
	t.update(ctx, stores[0], old.ID, verify(true))
	_, errs := race(racers, func(i int) (struct{}, error) {
		return struct{}{}, stores[i%len(stores)].Delete(ctx, old.ID, old.Version)
	})
	t.Expect(errs).To(HaveEach(MatchError(verification.ErrConflict)))

	current := t.get(ctx, stores[1], old.ID)
	_, errs = race(racers, func(i int) (struct{}, error) {
		return struct{}{}, stores[i%len(stores)].Delete(ctx, old.ID, current.Version)
	})
	t.Expect(errs).To(HaveEach(BeNil()), "what is gone already is no error")
	t.gone(ctx, stores[2], old.ID)
}
