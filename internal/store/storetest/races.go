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
	// rounds is the number of runs of a race of two, so that a moment in which both could win is likely to occur.
	rounds = 40
)

func raceChecks() []check {
	return []check{
		{name: "lets each of 64 racing updates see the one before", run: raceCounts},
		{name: "has one winner among 64 racers for one request", run: raceWins},
		{name: "ends in one final state when a message races with the expiry", run: raceFinal},
		{name: "either deletes or updates when both race", run: raceDelete},
		{name: "deletes one state once", run: raceDeletes},
	}
}

// raceCounts makes every racer increment a counter. A store whose writes overwrite each other counts too few.
func raceCounts(ctx context.Context, t *trial) {
	stores := t.openReplicas(4)
	id := t.createRequest(ctx, stores[0], t.newCreation()).ID
	t.updateRequest(ctx, stores[0], id, verifyClaimed(true))
	results, errs := runRacers(racers, func(i int) (verification.Request, error) {
		return stores[i%len(stores)].Update(ctx, id, func(r *verification.Request, _ time.Time) error {
			r.Delivery.Attempts++
			return nil
		})
	})
	t.Expect(errs).To(HaveEach(BeNil()))
	t.Expect(t.getRequest(ctx, stores[0], id).Delivery.Attempts).To(Equal(racers))
	counts, versions := map[int]bool{}, map[string]bool{}
	for _, r := range results {
		counts[r.Delivery.Attempts], versions[r.Version] = true, true
	}
	t.Expect(counts).To(HaveLen(racers), "each got the state that it wrote")
	t.Expect(versions).To(HaveLen(racers))
}

func raceWins(ctx context.Context, t *trial) {
	stores := t.openReplicas(4)
	id := t.createRequest(ctx, stores[0], t.newCreation()).ID
	t.updateRequest(ctx, stores[0], id, verifyClaimed(true))
	results, errs := runRacers(racers, func(i int) (verification.Request, error) {
		return stores[i%len(stores)].Update(ctx, id, func(r *verification.Request, _ time.Time) error {
			if r.Delivery.LastReason != "" {
				return errRefused
			}
			r.Delivery.LastReason = fmt.Sprintf("racer %d", i)
			return nil
		})
	})
	stored := t.getRequest(ctx, stores[1], id)
	winners := 0
	for i, err := range errs {
		if err == nil {
			winners++
			t.Expect(stored.Delivery.LastReason).To(Equal(fmt.Sprintf("racer %d", i)))
		} else {
			t.Expect(err).To(MatchError(errRefused))
		}
		t.Expect(results[i]).To(equalRequest(stored), "losers get the winner's state")
	}
	t.Expect(winners).To(Equal(1), "winners")
}

// raceFinal does not use clocks: replicas whose clocks differ may see a request as in time and as lapsed at one instant. Then
// only the store's compare-and-set prevents two final states.
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
	stores := t.openReplicas(4)
	phases := []verification.Phase{verification.Verified, verification.Expired, verification.Verified, verification.Expired}
	for range rounds {
		id := t.createRequest(ctx, stores[0], t.newCreation()).ID
		results, errs := runRacers(len(phases), func(i int) (verification.Request, error) {
			return stores[i].Update(ctx, id, final(phases[i]))
		})
		stored := t.getRequest(ctx, stores[0], id)
		winners := 0
		for i, err := range errs {
			if err == nil {
				winners++
				t.Expect(stored.Phase).To(Equal(phases[i]))
			} else {
				t.Expect(err).To(MatchError(verification.ErrFinal))
			}
			t.Expect(results[i]).To(equalRequest(stored))
		}
		t.Expect(winners).To(Equal(1), "acknowledged final states")
		t.Expect(stored.Delivery.Wanted()).To(Equal(stored.Phase == verification.Verified))
	}
}

func raceDelete(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	for range rounds {
		r := t.createRequest(ctx, a, t.newCreation())
		_, errs := runRacers(2, func(i int) (verification.Request, error) {
			if i == 0 {
				return verification.Request{}, a.Delete(ctx, r.ID, r.Version)
			}
			return b.Update(ctx, r.ID, verifyClaimed(true))
		})
		if errs[0] == nil {
			t.Expect(errs[1]).To(haveCode(verification.CodeNotFound), "the request was deleted")
			t.expectGone(ctx, b, r.ID)
			continue
		}
		t.Expect(errs).To(ConsistOf(MatchError(verification.ErrConflict), BeNil()), "the request was updated")
		t.Expect(t.getRequest(ctx, a, r.ID).Phase).To(Equal(verification.Verified))
	}
}

// raceDeletes runs concurrent deletions of an old version, which must not delete the current one, and then of the current one.
func raceDeletes(ctx context.Context, t *trial) {
	stores := t.openReplicas(4)
	old := t.createRequest(ctx, stores[0], t.newCreation())
	t.updateRequest(ctx, stores[0], old.ID, verifyClaimed(true))
	_, errs := runRacers(racers, func(i int) (struct{}, error) {
		return struct{}{}, stores[i%len(stores)].Delete(ctx, old.ID, old.Version)
	})
	t.Expect(errs).To(HaveEach(MatchError(verification.ErrConflict)))

	current := t.getRequest(ctx, stores[1], old.ID)
	_, errs = runRacers(racers, func(i int) (struct{}, error) {
		return struct{}{}, stores[i%len(stores)].Delete(ctx, old.ID, current.Version)
	})
	t.Expect(errs).To(HaveEach(BeNil()), "a deleted request is no error")
	t.expectGone(ctx, stores[2], old.ID)
}
