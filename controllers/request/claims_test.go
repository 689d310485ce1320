package request

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/workqueue"

	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/internal/webhook"
)

// ledgered is a queue that records its calls.
type ledgered struct {
	claims []verification.Policy
	sweeps int
	swept  verification.Swept
	due    chan struct{}
}

// Claim returns one request with its own epoch.
func (l *ledgered) Claim(_ context.Context, p verification.Policy, _ int, _ time.Duration) ([]verification.Request, error) {
	l.claims = append(l.claims, p)
	return []verification.Request{{ID: "a", Epoch: int64(len(l.claims))}}, nil
}

// Sweep returns the result that the test has set.
func (l *ledgered) Sweep(context.Context, verification.Policy, int) (verification.Swept, error) {
	l.sweeps++
	return l.swept, nil
}

// Release is never called.
func (*ledgered) Release(context.Context, map[string]int64) error { return errors.New("unexpected") }

// Due never notifies, unless a test does.
func (l *ledgered) Due() <-chan struct{} { return l.due }

func newWork(t *testing.T) workqueue.TypedRateLimitingInterface[Item] {
	t.Helper()
	work := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[Item]())
	t.Cleanup(work.ShutDown)
	return work
}

func TestClaims_leaveEventsToOthersWhileTheReceiverIsBusy(t *testing.T) {
	w := newScriptedReceiver(t)
	queue, work := &ledgered{}, newWork(t)
	w.Expect(w.controller.claimOnce(t.Context(), queue, work)).To(Equal(claimedSome))
	w.busy = &webhook.BusyError{After: time.Second}
	w.stepClock(maxPoll)
	w.Expect(w.controller.claimOnce(t.Context(), queue, work)).To(Equal(claimedSome))
	w.Expect(queue.sweeps).To(Equal(2), "requests expire meanwhile")
	w.Expect(queue.claims[0].Events).To(Equal(verification.EventsOn))
	w.Expect(queue.claims[1].Events).To(Equal(verification.EventsPaused))
	w.Expect(work.Len()).To(Equal(2))
}

func TestClaims_sweepOnceAPeriodUnlessThereIsMore(t *testing.T) {
	w := newScriptedReceiver(t)
	queue, work := &ledgered{}, newWork(t)
	for range 3 {
		w.controller.claimOnce(t.Context(), queue, work)
	}
	w.Expect(queue.sweeps).To(Equal(1))
	w.stepClock(maxPoll)
	queue.swept.Deleted = sweepBatch
	for range 3 {
		w.controller.claimOnce(t.Context(), queue, work)
	}
	w.Expect(queue.sweeps).To(Equal(4), "a full sweep is followed by the next")
}

func TestClaims_claimNothingWhileMuchWaits(t *testing.T) {
	w := newScriptedReceiver(t)
	queue, work := &ledgered{}, newWork(t)
	for epoch := range int64(claimBatch/2 + 1) {
		work.Add(Item{ID: "b", Epoch: epoch})
	}
	w.Expect(w.controller.claimOnce(t.Context(), queue, work)).To(Equal(claimSkipped))
	w.Expect(queue.claims).To(BeEmpty())
	w.Expect(queue.sweeps).To(Equal(1), "requests expire meanwhile")
	_, _ = work.Get()
	w.Expect(w.controller.claimOnce(t.Context(), queue, work)).To(Equal(claimedSome))
	w.Expect(queue.claims).To(HaveLen(1))
}

// TestClaims_followEachOtherWhileThereIsMore has more due requests than one claim takes.
func TestClaims_followEachOtherWhileThereIsMore(t *testing.T) {
	w := newScriptedReceiver(t)
	for i := range claimBatch + 1 {
		w.verify(strconv.Itoa(i))
	}
	queue, work := w.store.(verification.Queue), newWork(t)
	hauls := func() []claimSize {
		got := []claimSize{w.controller.claimOnce(t.Context(), queue, work)}
		for work.Len() > 0 {
			item, _ := work.Get()
			work.Done(item)
		}
		return got
	}
	w.Expect(append(append(hauls(), hauls()...), hauls()...)).To(Equal([]claimSize{claimedFull, claimedSome, claimedNone}))
}

// countingStore counts reads of the current state and others.
type countingStore struct {
	verification.Store

	reads, cachedReads int
}

func (c *countingStore) ReadCached(ctx context.Context, id string) (verification.Request, error) {
	c.cachedReads++
	return c.Store.ReadCached(ctx, id)
}

func (c *countingStore) Read(ctx context.Context, id string) (verification.Request, error) {
	c.reads++
	return c.Store.Read(ctx, id)
}

// TestClaims_areAReadWhileTheyAreFresh sends a freshly claimed request without reading it again, and reads one that has waited or
// that another worker has claimed since.
func TestClaims_areAReadWhileTheyAreFresh(t *testing.T) {
	for name, tc := range map[string]struct {
		meanwhile func(w *scriptedReceiver, queue verification.Queue)
		reads     int
		sent      int
	}{
		"at once":              {func(*scriptedReceiver, verification.Queue) {}, 0, 1},
		"a moment later":       {func(w *scriptedReceiver, _ verification.Queue) { w.stepClock(time.Second - 1) }, 0, 1},
		"a second later":       {func(w *scriptedReceiver, _ verification.Queue) { w.stepClock(time.Second) }, 1, 1},
		"after a clock's jump": {func(w *scriptedReceiver, _ verification.Queue) { w.stepClock(-time.Hour) }, 0, 0},
		"after another claim": {func(w *scriptedReceiver, queue verification.Queue) {
			w.stepClock(DefaultClaimLease)
			w.Expect(queue.Claim(w.t.Context(), w.controller.currentPolicy(), 1, time.Minute)).To(HaveLen(1))
		}, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newScriptedReceiver(t)
			w.verify("a")
			w.answer = answers(webhook.Delivered, 200, 0)
			queue, work := w.store.(verification.Queue), newWork(t)
			w.Expect(w.controller.claimOnce(t.Context(), queue, work)).To(Equal(claimedSome))
			tc.meanwhile(w, queue)
			store := &countingStore{Store: w.store}
			w.controller.Store = store
			item, _ := work.Get()
			w.reconcile(item)
			w.Expect([]int{store.cachedReads, store.reads, len(w.sent)}).To(Equal([]int{0, tc.reads, tc.sent}))
		})
	}
}

// TestClaims_areReadAgainAfterALongWait reads an event again before it is sent if its slot is late, but not if its slot is soon.
// Nothing is read while it waits.
func TestClaims_areReadAgainAfterALongWait(t *testing.T) {
	for later, reads := range map[time.Duration]int{time.Millisecond: 0, time.Second: 1} {
		t.Run(later.String(), func(t *testing.T) {
			w := newScriptedReceiver(t)
			w.verify("a")
			w.answer = answers(webhook.Delivered, 200, 0)
			work := newWork(t)
			w.Expect(w.controller.claimOnce(t.Context(), w.store.(verification.Queue), work)).To(Equal(claimedSome))
			store := &countingStore{Store: w.store}
			w.controller.Store = store
			item, _ := work.Get()
			w.busy = &webhook.BusyError{After: time.Millisecond}
			w.Expect(w.reconcile(item)).NotTo(BeZero())
			w.stepClock(later)
			w.Expect(w.reconcile(item)).NotTo(BeZero())
			w.Expect(store.reads).To(BeZero())
			w.busy = nil
			w.reconcile(item)
			w.Expect([]int{store.cachedReads, store.reads, len(w.sent)}).To(Equal([]int{0, reads, 1}))
		})
	}
}

// A worker whose claim was taken over by another one does nothing, neither by the state that its claim read nor by the stored
// state.
func TestReconcile_expiresNothingThatAnotherWorkerClaimed(t *testing.T) {
	for name, remembered := range map[string]bool{"by what its claim read": true, "by what is stored now": false} {
		t.Run(name, func(t *testing.T) {
			w := newScriptedReceiver(t)
			w.create("a")
			w.stepClock(ttl + time.Minute)
			claim := func() verification.Request {
				claimed, err := w.store.(verification.Queue).Claim(t.Context(), w.controller.currentPolicy(), 1, time.Minute)
				w.Expect(err).NotTo(HaveOccurred())
				w.Expect(claimed).To(HaveLen(1))
				w.stepClock(2 * time.Minute)
				return claimed[0]
			}
			first := claim()
			item := Item{ID: "a", Epoch: first.Epoch, Claimed: true}
			second := claim()
			if remembered {
				w.controller.handed.keep(item, view{first, w.clock.Now()})
			}
			w.Expect(w.reconcile(item)).To(BeZero())
			w.Expect(w.get("a").Phase).To(Equal(verification.Pending))
			w.Expect(w.reconcile(Item{ID: "a", Epoch: second.Epoch, Claimed: true})).To(BeZero())
			w.Expect(w.get("a").Phase).To(Equal(verification.Expired))
		})
	}
}
