package request

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/internal/webhook"
)

// recordedStore notes the result of each attempt that is recorded.
type recordedStore struct {
	verification.Store

	recorded func(before, after verification.Delivery, id string)
}

func (s *recordedStore) Update(ctx context.Context, id string, mutate verification.Mutation) (verification.Request, error) {
	var before verification.Delivery
	r, err := s.Store.Update(ctx, id, func(r *verification.Request, now time.Time) error {
		before = r.Delivery
		return mutate(r, now)
	})
	s.recorded(before, r.Delivery, id)
	return r, err
}

// TestReconcile_afterARepair delivers 500 events to a receiver that was down, counts as repaired every 20 minutes from then on, and
// still fails every second call and each of one event. No event loses an attempt of its schedule.
func TestReconcile_afterARepair(t *testing.T) {
	const events, down = 500, 3 * time.Hour
	w := newScriptedReceiver(t)
	w.settings.Retention = 100 * time.Hour
	for i := range events {
		w.verify(fmt.Sprintf("r%03d", i))
	}
	poison := verification.Delivery{}
	var extra, counted []time.Time // attempts of the poison
	w.controller.Store = &recordedStore{w.store, func(before, after verification.Delivery, id string) {
		if id != "r007" {
			return
		}
		poison = after
		if after.Attempts == before.Attempts {
			extra = append(extra, after.LastAttemptAt)
			w.Expect(after.NextAttemptAt).To(Equal(before.NextAttemptAt), "the schedule goes on")
		} else {
			counted = append(counted, after.LastAttemptAt)
		}
	}}
	poisonEvent, calls := "", 0
	w.answer = func(int) (webhook.Result, error) {
		calls++
		if w.clock.Since(start) < down || calls%2 == 0 || w.events[len(w.events)-1] == poisonEvent {
			return answers(webhook.Retry, 500, 0)(0)
		}
		return answers(webhook.Delivered, 204, 0)(0)
	}
	r := w.get("r007")
	e, err := webhook.NewEvent("shop/acme", &r)
	w.Expect(err).NotTo(HaveOccurred())
	poisonEvent = e.ID()

	stepped := 5 * time.Second
	for poison.ExhaustedAt.IsZero() {
		w.Expect(w.clock.Since(start)).To(BeNumerically("<", 100*time.Hour))
		if since := w.clock.Since(start); since >= down && since < 10*time.Hour && since%(20*time.Minute) < stepped {
			w.settings.Webhook.Repaired = w.clock.Now()
		}
		claimed, err := w.store.(verification.Queue).Claim(w.t.Context(), w.controller.currentPolicy(), events, time.Minute)
		w.Expect(err).NotTo(HaveOccurred())
		for _, c := range claimed {
			item := Item{ID: c.ID, Epoch: c.Epoch, Claimed: true}
			w.controller.handed.keep(item, view{c, w.clock.Now()})
			w.reconcile(item)
		}
		if w.clock.Since(start) == down+2*time.Hour {
			left := 0
			for i := range events {
				if r := w.get(fmt.Sprintf("r%03d", i)); r.Delivery.Wanted() {
					left++
				}
			}
			w.Expect(left).To(BeNumerically("<", events/4), "by the schedule alone their next attempt comes up to five hours after the repair")
		}
		if w.clock.Since(start) > 10*time.Minute {
			stepped = time.Minute
		}
		w.stepClock(stepped)
	}
	w.Expect(counted).To(HaveLen(webhook.MaxAttempts), "given up after ten attempts of the schedule")
	w.Expect(counted[9].Sub(counted[0])).To(BeNumerically(">=", 75*time.Hour+35*time.Minute+5*time.Second), "and no earlier than it")
	w.Expect(len(extra)).To(BeNumerically(">=", 3))
	for i := range extra[1:] {
		w.Expect(extra[i+1].Sub(extra[i])).To(BeNumerically(">=", time.Hour))
	}
	for i := range events {
		if d := w.get(fmt.Sprintf("r%03d", i)).Delivery; !d.ExhaustedAt.IsZero() {
			w.Expect(d.Attempts).To(Equal(webhook.MaxAttempts))
		}
	}
}
