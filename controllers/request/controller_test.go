package request

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/internal/webhook"
)

const (
	ttl       = 10 * time.Minute
	retention = time.Hour
)

// scriptedReceiver is a receiver of webhooks with scripted answers, and a controller that delivers to it from a memory store by a
// stepped clock.
type scriptedReceiver struct {
	*storedRequests

	settings   *settings.Settings
	controller *Controller

	// answer is the receiver's response; sent are the times and bodies that it received.
	answer func(attempt int) (webhook.Result, error)
	busy   error
	sent   []time.Time
	events []string
	// wrap decorates the sender; nil for none.
	wrap func(Sender) Sender
}

func newScriptedReceiver(t *testing.T) *scriptedReceiver {
	t.Helper()
	w := &scriptedReceiver{storedRequests: newStoredRequests(t)}
	w.settings = &settings.Settings{
		Project: "shop/acme", ProjectID: "shop/acme", Retention: retention,
		Webhook: &settings.Webhook{URL: "https://shop.example/hook", Events: verification.NewEventKinds(verification.EventSuccess), Timeout: 15 * time.Second},
	}
	w.restart()
	return w
}

// restart begins a new term with nothing but the stored state.
func (w *scriptedReceiver) restart() {
	w.controller = New(Options{
		Store: w.store, Settings: func() *settings.Settings { return w.settings }, Sender: w, Namespace: "shop", Clock: w.clock,
	})
}

// Busy always has a slot, unless a test sets an error; Send may reject too.
func (w *scriptedReceiver) Busy(webhook.Endpoint) error { return w.busy }

// Free returns the free slots of the receiver.
func (w *scriptedReceiver) Free(webhook.Endpoint) int {
	if w.busy != nil {
		return 0
	}
	return webhook.SlowStart
}

// Send plays the receiver.
func (w *scriptedReceiver) Send(_ context.Context, _ webhook.Endpoint, e webhook.Event) (webhook.Result, error) {
	w.sent = append(w.sent, w.clock.Now())
	w.events = append(w.events, e.ID())
	return w.answer(len(w.sent))
}

func answers(outcome webhook.Outcome, status int, retryAfter time.Duration) func(int) (webhook.Result, error) {
	return func(int) (webhook.Result, error) {
		v := webhook.Verdict{Outcome: outcome, StatusCode: status, RetryAfter: retryAfter}
		if outcome != webhook.Delivered {
			v.Reason = webhook.Reason(fmt.Sprintf("http_%d", status))
		}
		return webhook.Result{Verdict: v}, nil
	}
}

func (w *scriptedReceiver) get(id string) verification.Request {
	w.t.Helper()
	r, err := w.store.Read(w.t.Context(), id)
	w.Expect(err).NotTo(HaveOccurred())
	return r
}

func (w *scriptedReceiver) isGone(id string) bool {
	_, err := w.store.Read(w.t.Context(), id)
	return errors.Is(err, verification.ErrNotFound)
}

// claimNext claims the next request that is due after a while, as the source of claims does.
func (w *scriptedReceiver) claimNext(after time.Duration) Item {
	w.t.Helper()
	w.stepClock(after)
	claimed, err := w.store.(verification.Queue).Claim(w.t.Context(), w.controller.currentPolicy(), 1, time.Minute)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(claimed).To(HaveLen(1))
	item := Item{ID: claimed[0].ID, Epoch: claimed[0].Epoch, Claimed: true}
	w.controller.handed.keep(item, view{claimed[0], w.controller.Clock.Now()})
	return item
}

// reconcile runs once and returns the wait.
func (w *scriptedReceiver) reconcile(item Item) time.Duration {
	w.t.Helper()
	result, err := w.controller.Reconcile(w.t.Context(), item)
	w.Expect(err).NotTo(HaveOccurred())
	return result.RequeueAfter
}

func TestReconcile_expiresExactlyOnTimeAndDeletesAfterRetention(t *testing.T) {
	w := newScriptedReceiver(t)
	w.create("a")
	w.Expect(w.reconcile(Item{ID: "a"})).To(Equal(ttl + verification.ExpiryGrace))
	w.stepClock(ttl + verification.ExpiryGrace - 1)
	w.Expect(w.reconcile(Item{ID: "a"})).To(Equal(time.Duration(1)))
	w.stepClock(1)
	w.Expect(w.reconcile(Item{ID: "a"})).To(Equal(retention))
	w.Expect(w.get("a").Phase).To(Equal(verification.Expired))
	w.Expect(w.sent).To(BeEmpty(), "an expired request has no event")
	w.stepClock(retention)
	w.Expect(w.reconcile(Item{ID: "a"})).To(BeZero())
	w.Expect(w.isGone("a")).To(BeTrue())
	w.Expect(w.reconcile(Item{ID: "a"})).To(BeZero(), "a deleted request needs nothing")
}

func TestReconcile_deliversAtOnceAndDeletesAfterRetention(t *testing.T) {
	w := newScriptedReceiver(t)
	w.verify("a")
	w.answer = answers(webhook.Delivered, 204, 0)
	w.Expect(w.reconcile(Item{ID: "a"})).To(Equal(retention))
	delivery := w.get("a").Delivery
	w.Expect(delivery.Attempts).To(Equal(1))
	w.Expect(delivery.LastStatusCode).To(Equal(204))
	w.Expect(delivery.DeliveredAt).To(Equal(w.clock.Now()))
	w.stepClock(retention)
	w.Expect(w.reconcile(Item{ID: "a"})).To(BeZero())
	w.Expect(w.isGone("a")).To(BeTrue())
	w.Expect(w.sent).To(HaveLen(1))
}

// Each row of the schedule runs in a new process, so nothing of the schedule lives in memory.
func TestReconcile_followsTheScheduleThroughRestarts(t *testing.T) {
	w := newScriptedReceiver(t)
	w.verify("a")
	w.answer = answers(webhook.Retry, 500, 0)
	schedule := []time.Duration{
		0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour,
		5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
	}
	for i := range schedule {
		w.restart()
		wait := w.reconcile(Item{ID: "a"})
		w.Expect(w.sent).To(HaveLen(i + 1))
		delivery := w.get("a").Delivery
		w.Expect(delivery.Attempts).To(Equal(i + 1))
		w.Expect(delivery.LastReason).To(Equal("http_500"))
		if i+1 == len(schedule) {
			w.Expect(delivery.ExhaustedAt).To(Equal(w.clock.Now()))
			w.Expect(wait).To(Equal(retention), "an exhausted event is kept for its retention")
			break
		}
		w.Expect(wait).To(BeNumerically("~", schedule[i+1]+schedule[i+1]/10, schedule[i+1]/10+time.Second))
		w.stepClock(wait - 1)
		w.Expect(w.reconcile(Item{ID: "a"})).To(Equal(time.Duration(1)), "not a moment early")
		w.stepClock(1)
	}
	w.Expect(w.events).To(HaveEach(w.events[0]), "one webhook-id for every attempt")
	w.stepClock(retention)
	w.reconcile(Item{ID: "a"})
	w.Expect(w.isGone("a")).To(BeTrue())
}

func TestReconcile_deliversWhenTheReceiverRecovers(t *testing.T) {
	w := newScriptedReceiver(t)
	w.verify("a")
	w.answer = func(attempt int) (webhook.Result, error) {
		if attempt < 4 {
			return answers(webhook.Retry, 503, 0)(attempt)
		}
		return answers(webhook.Delivered, 200, 0)(attempt)
	}
	for range 4 {
		w.stepClock(w.reconcile(Item{ID: "a"}))
	}
	w.Expect(w.get("a").Delivery.DeliveredAt).NotTo(BeZero())
	w.Expect(w.sent).To(HaveLen(4))
}

func TestReconcile_goneEndsTheEvent(t *testing.T) {
	w := newScriptedReceiver(t)
	w.verify("a")
	w.answer = answers(webhook.Gone, 410, 0)
	w.Expect(w.reconcile(Item{ID: "a"})).To(Equal(retention))
	w.Expect(w.get("a").Delivery.ExhaustedAt).NotTo(BeZero())
}

func TestReconcile_grantsRetryAfterWithinBounds(t *testing.T) {
	w := newScriptedReceiver(t)
	w.verify("a")
	w.answer = answers(webhook.Retry, 429, 24*time.Hour)
	wait := w.reconcile(Item{ID: "a"})
	w.Expect(wait).To(BeNumerically(">=", time.Minute))
	w.Expect(wait).To(BeNumerically("<", 2*time.Minute))
}

func TestReconcile_waitsWhileTheSecretCannotBeRead(t *testing.T) {
	w := newScriptedReceiver(t)
	w.verify("a")
	w.settings.Webhook.Signed = true
	w.Expect(w.reconcile(Item{ID: "a"})).To(Equal(verification.PausedRecheck))
	w.stepClock(1000 * time.Hour)
	w.Expect(w.reconcile(Item{ID: "a"})).To(Equal(verification.PausedRecheck))
	w.Expect(w.sent).To(BeEmpty())
	w.Expect(w.get("a").Delivery.Attempts).To(BeZero(), "no attempt is counted")
}

func TestReconcile_countsOnlyAttempts(t *testing.T) {
	for name, test := range map[string]struct {
		err   error
		waits bool
	}{
		"all slots taken": {&webhook.BusyError{After: time.Second}, true},
		"paused":          {webhook.ErrPaused, true},
		"no descriptors":  {webhook.ErrNoResources, true},
		"lease lost":      {webhook.ErrNotLeading, true},
		"term ended":      {fmt.Errorf("send: %w", context.Canceled), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newScriptedReceiver(t)
			w.verify("a")
			before := w.get("a")
			w.answer = func(int) (webhook.Result, error) { return webhook.Result{}, test.err }
			wait := w.reconcile(Item{ID: "a"})
			if test.waits {
				w.Expect(wait).To(BeNumerically(">", 0))
			} else {
				w.Expect(wait).To(BeZero())
			}
			w.Expect(w.get("a")).To(Equal(before))
		})
	}
}

func TestReconcile_readsNothingForWhatWaitsForASlot(t *testing.T) {
	w := newScriptedReceiver(t)
	w.verify("a")
	w.busy = &webhook.BusyError{After: time.Second}
	w.controller.Store = &staleStore{stale: w.get("a")} // any other call of the store would panic
	w.Expect(w.reconcile(Item{ID: "a"})).To(Equal(time.Second))
	w.Expect(w.sent).To(BeEmpty())
}

func TestReconcile_anAttemptThatCouldNotBeRecordedIsNotMadeAgain(t *testing.T) {
	w := newScriptedReceiver(t)
	w.verify("a")
	w.answer = func(attempt int) (webhook.Result, error) {
		w.backend.Fail(errors.New("down")) // between the send and its record
		return answers(webhook.Delivered, 200, 0)(attempt)
	}
	_, err := w.controller.Reconcile(t.Context(), Item{ID: "a"})
	w.Expect(err).To(MatchError(ContainSubstring("record attempt")))
	_, err = w.controller.Reconcile(t.Context(), Item{ID: "a"})
	w.Expect(err).To(HaveOccurred(), "nothing is skipped while the store fails")
	w.backend.Fail(nil)
	w.Expect(w.reconcile(Item{ID: "a"})).To(Equal(retention))
	w.Expect(w.sent).To(HaveLen(1))
	w.Expect(w.get("a").Delivery.Attempts).To(Equal(1))
}

func TestReconcile_anAttemptThatCouldNotBeRecordedIsRecordedUnderTheNextClaim(t *testing.T) {
	for name, turns := range map[string]func(w *scriptedReceiver, first, second Item){
		"the store fails on": func(w *scriptedReceiver, first, second Item) {
			w.backend.Fail(errors.New("no space left on device"))
			for _, item := range []Item{second, first} {
				_, err := w.controller.Reconcile(w.t.Context(), item)
				w.Expect(err).To(MatchError(ContainSubstring("record attempt")))
			}
			w.backend.Fail(nil)
		},
		"the store is back": func(*scriptedReceiver, Item, Item) {},
		"the former claim is reconciled first": func(w *scriptedReceiver, first, _ Item) {
			w.Expect(w.reconcile(first)).To(BeZero())
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newScriptedReceiver(t)
			w.verify("a")
			w.answer = func(attempt int) (webhook.Result, error) {
				w.backend.Fail(errors.New("no space left on device"))
				return answers(webhook.Delivered, 200, 0)(attempt)
			}
			first := w.claimNext(2 * time.Minute)
			_, err := w.controller.Reconcile(t.Context(), first)
			w.Expect(err).To(MatchError(ContainSubstring("record attempt")))
			w.backend.Fail(nil)
			second := w.claimNext(2 * time.Minute)
			turns(w, first, second)
			w.Expect(w.reconcile(second)).To(BeZero())
			w.Expect(w.sent).To(HaveLen(1))
			w.Expect(w.get("a").Delivery).To(And(HaveField("Attempts", 1), HaveField("DeliveredAt", Not(BeZero()))))
		})
	}
}

func TestReconcile_neverSkipsForAFailingStore(t *testing.T) {
	w := newScriptedReceiver(t)
	w.verify("a")
	w.backend.Fail(errors.New("down"))
	for range 3 * maxRefusals {
		_, err := w.controller.Reconcile(t.Context(), Item{ID: "a"})
		w.Expect(err).To(HaveOccurred())
	}
	w.backend.Fail(nil)
	w.answer = answers(webhook.Delivered, 200, 0)
	w.reconcile(Item{ID: "a"})
	w.Expect(w.sent).To(HaveLen(1))
}

// refusing is a store that refuses writes for their content.
type refusing struct{ verification.Store }

func (refusing) Update(context.Context, string, func(*verification.Request, time.Time) error) (verification.Request, error) {
	return verification.Request{}, fmt.Errorf("update: %w", verification.ErrContent)
}

func TestReconcile_leavesAloneWhatTheStoreRefusesFiveTimes(t *testing.T) {
	w := newScriptedReceiver(t)
	w.create("a")
	w.stepClock(time.Hour)
	w.controller.Store = refusing{w.store}
	for range maxRefusals - 1 {
		_, err := w.controller.Reconcile(t.Context(), Item{ID: "a"})
		w.Expect(err).To(MatchError(verification.ErrContent))
	}
	w.Expect(w.reconcile(Item{ID: "a"})).To(Equal(refusedRest))
}

func TestReconcile_anotherWorkerRecordedFirst(t *testing.T) {
	w := newScriptedReceiver(t)
	w.verify("a")
	w.answer = func(attempt int) (webhook.Result, error) {
		_, err := w.store.Update(t.Context(), "a", func(r *verification.Request, now time.Time) error {
			return r.RecordAttempt(verification.Attempt{Event: r.Event(), Number: 1, At: now, Delivered: true})
		})
		w.Expect(err).NotTo(HaveOccurred())
		return answers(webhook.Retry, 500, 0)(attempt)
	}
	w.Expect(w.reconcile(Item{ID: "a"})).To(BeZero())
	w.Expect(w.get("a").Delivery.DeliveredAt).NotTo(BeZero(), "a recorded attempt stays")
	w.Expect(w.reconcile(Item{ID: "a"})).To(Equal(retention))
	w.Expect(w.sent).To(HaveLen(1))
}

func TestReconcile_redeliversAfterTheAttemptInProgress(t *testing.T) {
	w := newScriptedReceiver(t)
	w.verify("a")
	w.answer = func(attempt int) (webhook.Result, error) {
		if attempt == 1 {
			w.stepClock(time.Second)
			_, err := w.store.Update(t.Context(), "a", func(r *verification.Request, now time.Time) error {
				return r.Redeliver("a/1", now, verification.NewEventKinds(verification.EventSuccess))
			})
			w.Expect(err).NotTo(HaveOccurred())
			return answers(webhook.Retry, 500, 0)(attempt)
		}
		return answers(webhook.Delivered, 200, 0)(attempt)
	}
	w.reconcile(Item{ID: "a"})
	w.Expect(w.sent).To(HaveLen(2), "the attempt in flight does not delay the redelivery")
	r := w.get("a")
	w.Expect(r.Delivery.DeliveredAt).NotTo(BeZero())
	w.Expect(r.PastAttempts()).To(HaveLen(2), "and is recorded like any other")
}

// TestReconcile_aClaimEndsWithItsRecord: the event is due again, and the next claim sends it, not the former worker as well.
func TestReconcile_aClaimEndsWithItsRecord(t *testing.T) {
	w := newScriptedReceiver(t)
	w.verify("a")
	w.answer = func(attempt int) (webhook.Result, error) {
		if attempt == 1 {
			w.stepClock(time.Second)
			w.update("a", func(r *verification.Request, now time.Time) error {
				return r.Redeliver("api:1", now, verification.NewEventKinds(verification.EventSuccess))
			})
			claimed, err := w.store.(verification.Queue).Claim(t.Context(), w.controller.currentPolicy(), 1, time.Minute)
			w.Expect(claimed, err).To(BeEmpty(), "no other sends it meanwhile")
		}
		return answers(webhook.Delivered, 200, 0)(attempt)
	}
	w.Expect(w.reconcile(w.claimNext(time.Second))).To(BeZero())
	w.Expect(w.sent).To(HaveLen(1))
	w.Expect(w.reconcile(w.claimNext(time.Second))).To(BeZero())
	w.Expect(w.sent).To(HaveLen(2))
	r := w.get("a")
	w.Expect(r.Delivery.DeliveredAt).NotTo(BeZero())
	w.Expect(r.PastAttempts()).To(HaveLen(2))
}

func TestReconcile_asksTheStoreAfreshBeforeItSends(t *testing.T) {
	w := newScriptedReceiver(t)
	w.verify("a")
	stale := w.get("a")
	w.answer = answers(webhook.Delivered, 200, 0)
	w.reconcile(Item{ID: "a"})
	w.controller.Store = &staleStore{countingStore{Store: w.store}, stale}
	w.Expect(w.reconcile(Item{ID: "a"})).To(Equal(retention))
	w.Expect(w.sent).To(HaveLen(1), "a stale cache sends nothing")
}

func TestReconcile_ofAClaimThatWasLost(t *testing.T) {
	w := newScriptedReceiver(t)
	w.verify("a")
	w.answer = answers(webhook.Delivered, 200, 0)
	w.Expect(w.reconcile(Item{ID: "a", Epoch: 7, Claimed: true})).To(BeZero())
	w.Expect(w.sent).To(BeEmpty())
}

func TestReconcile_ofAClaimLeavesTheWaitingToTheStore(t *testing.T) {
	w := newScriptedReceiver(t)
	w.verify("a")
	w.answer = answers(webhook.Retry, 500, 0)
	w.Expect(w.reconcile(Item{ID: "a", Claimed: true})).To(BeZero())
	w.Expect(w.sent).To(HaveLen(1))
}

func TestReconcile_ofAClaimKeepsItWhileItWaitsForASlot(t *testing.T) {
	w := newScriptedReceiver(t)
	w.verify("a")
	w.answer = func(int) (webhook.Result, error) { return webhook.Result{}, &webhook.BusyError{After: time.Second} }
	w.Expect(w.reconcile(Item{ID: "a", Claimed: true})).To(BeNumerically(">=", time.Second))
}

func TestReconcile_pacesDeletion(t *testing.T) {
	w := newScriptedReceiver(t)
	w.controller = New(Options{
		Store: w.store, Settings: func() *settings.Settings { return w.settings }, Sender: w, Clock: w.clock, DeletesPerSecond: 2,
	})
	for i := range 6 {
		w.create(strconv.Itoa(i))
	}
	w.stepClock(ttl + retention + time.Minute)
	deleted := func() (n int) {
		for i := range 6 {
			if w.reconcile(Item{ID: strconv.Itoa(i)}); w.isGone(strconv.Itoa(i)) {
				n++
			}
		}
		return n
	}
	w.Expect(deleted()).To(Equal(2))
	w.stepClock(time.Second)
	w.Expect(deleted()).To(Equal(4))
}

// TestReconcile_comesBackForDeletionAFewTimes has a thousand requests that are due for deletion at once.
func TestReconcile_comesBackForDeletionAFewTimes(t *testing.T) {
	const requests, perSecond = 1000, 10
	w := newScriptedReceiver(t)
	w.controller = New(Options{
		Store: w.store, Settings: func() *settings.Settings { return w.settings }, Sender: w, Clock: w.clock, DeletesPerSecond: perSecond,
	})
	due := map[string]time.Time{}
	for i := range requests {
		w.create(strconv.Itoa(i))
		due[strconv.Itoa(i)] = start.Add(ttl + retention + time.Minute)
	}
	w.stepClock(ttl + retention + time.Minute)
	began, reconciles := w.clock.Now(), 0
	for len(due) > 0 {
		next := slices.MinFunc(slices.Collect(maps.Keys(due)), func(a, b string) int { return due[a].Compare(due[b]) })
		w.clock.SetTime(due[next])
		reconciles++
		w.Expect(reconciles).To(BeNumerically("<", 5*requests))
		if wait := w.reconcile(Item{ID: next}); wait > 0 {
			due[next] = due[next].Add(wait)
			continue
		}
		w.Expect(w.isGone(next)).To(BeTrue())
		delete(due, next)
	}
	w.Expect(w.clock.Now().Sub(began)).To(BeNumerically("~", requests/perSecond*time.Second, 10*time.Second), "no turn is left unused")
}

func TestReconcile_aRemovedWebhookKeepsTheEventForItsLife(t *testing.T) {
	w := newScriptedReceiver(t)
	w.verify("a")
	hook := w.settings.Webhook
	w.settings.Webhook = nil
	w.Expect(w.reconcile(Item{ID: "a"})).To(Equal(verification.EventLife))
	w.stepClock(10 * retention)
	w.Expect(w.reconcile(Item{ID: "a"})).To(Equal(verification.EventLife - 10*retention))
	w.settings.Webhook = hook
	w.answer = answers(webhook.Delivered, 200, 0)
	w.reconcile(Item{ID: "a"})
	w.Expect(w.sent).To(HaveLen(1), "set again in time, it is delivered")
}

func TestReconcile_recordsAnAttemptAfterTheEndOfTheTerm(t *testing.T) {
	w := newScriptedReceiver(t)
	w.verify("a")
	term, end := context.WithCancel(t.Context())
	w.answer = func(attempt int) (webhook.Result, error) {
		end() // the receiver has the event, and this worker no lease any more
		return answers(webhook.Delivered, 200, 0)(attempt)
	}
	_, _ = w.controller.Reconcile(term, Item{ID: "a"}) // the next step fails, as expected
	w.Expect(w.get("a").Delivery.DeliveredAt).NotTo(BeZero())
	w.Expect(w.get("a").Delivery.Attempts).To(Equal(1))
}
