package request

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/store/memory"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/internal/webhook"
)

// run runs the loop with real workers, a real queue and a real sender until the test ends.
func (w *scriptedReceiver) run(receiver http.HandlerFunc) {
	w.t.Helper()
	server := httptest.NewServer(receiver)
	w.t.Cleanup(server.Close)
	w.settings.Webhook.URL = server.URL
	sender := webhook.NewSender(webhook.Options{Guard: webhook.NewDevGuard(webhook.GuardConfig{})})
	w.controller.Sender = sender
	if w.wrap != nil {
		w.controller.Sender = w.wrap(sender)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	queue, ok := w.store.(*memory.Store)
	w.Expect(ok).To(BeTrue())
	go func() { ended <- w.controller.RunClaims(ctx, queue) }()
	w.t.Cleanup(func() {
		cancel()
		w.Eventually(ended).WithTimeout(30 * time.Second).Should(Receive(BeNil()))
		sender.Close()
	})
}

func TestRun_deliversAllThatIsDueOnce(t *testing.T) {
	const requests = 300
	w := newScriptedReceiver(t)
	for i := range requests {
		w.verify(strconv.Itoa(i))
	}
	var (
		mu  sync.Mutex
		ids = map[string]int{}
	)
	w.run(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		ids[r.Header.Get("Webhook-Id")]++
		rw.WriteHeader(http.StatusNoContent)
	})
	w.Eventually(func(g Gomega) {
		for i := range requests {
			r, err := w.store.Read(t.Context(), strconv.Itoa(i))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(r.Delivery.DeliveredAt).NotTo(BeZero())
		}
	}).WithTimeout(30 * time.Second).Should(Succeed())
	mu.Lock()
	defer mu.Unlock()
	w.Expect(ids).To(HaveLen(requests))
	w.Expect(ids).To(HaveEach(1))
}

func TestRun_aReceiverThatHangsHoldsUpNothingElse(t *testing.T) {
	w := newScriptedReceiver(t)
	for i := range 4 * workers {
		w.verify(fmt.Sprint("hangs", i))
	}
	for i := range 100 {
		w.create(fmt.Sprint("lapses", i))
	}
	w.stepClock(ttl + time.Minute)
	release := make(chan struct{})
	w.run(func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) }) // the server's Close, which comes after it, waits for its handlers
	w.Eventually(func(g Gomega) {
		for i := range 100 {
			r, err := w.store.Read(t.Context(), fmt.Sprint("lapses", i))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(r.Phase).To(Equal(verification.Expired))
		}
	}).WithTimeout(30 * time.Second).Should(Succeed())
	w.Expect(w.get("hangs0").Delivery.Attempts).To(BeZero())
}

// slowReceiver is a sender to a receiver that answers late. It has two slots, which the first two events keep.
type slowReceiver struct {
	mu     sync.Mutex
	sent   int
	answer chan struct{}
}

// Busy leaves it to Send to reject.
func (s *slowReceiver) Busy(webhook.Endpoint) error { return nil }

// Free lets claims include events.
func (s *slowReceiver) Free(webhook.Endpoint) int { return 1 }

// Send returns when the receiver answers.
func (s *slowReceiver) Send(ctx context.Context, _ webhook.Endpoint, _ webhook.Event) (webhook.Result, error) {
	s.mu.Lock()
	s.sent++
	busy := s.sent > 2
	s.mu.Unlock()
	if busy {
		return webhook.Result{}, &webhook.BusyError{After: time.Minute}
	}
	select {
	case <-s.answer:
		return webhook.Result{Verdict: webhook.Verdict{Outcome: webhook.Delivered, StatusCode: http.StatusNoContent}}, nil
	case <-ctx.Done():
		return webhook.Result{}, ctx.Err()
	}
}

// TestRunClaims_finishesAttemptsAndReleasesOtherClaims ends the loop while two attempts are in flight and eight events wait for a slot.
func TestRunClaims_finishesAttemptsAndReleasesOtherClaims(t *testing.T) {
	for name, answersIn := range map[string]time.Duration{"answered before the end": drainTime - 1, "not answered": drainTime} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newScriptedReceiver(t)
				for i := range 10 {
					w.verify(strconv.Itoa(i))
				}
				receiver, queue := &slowReceiver{answer: make(chan struct{})}, w.store.(verification.Queue)
				w.controller.Sender = receiver
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- w.controller.RunClaims(ctx, queue) }()
				advanceTime(2 * minPoll)
				w.stepClock(ClaimFresh) // the other events are read again before they are tried
				advanceTime(time.Minute)
				w.Expect(queue.Claim(t.Context(), w.controller.currentPolicy(), claimBatch, time.Minute)).To(BeEmpty(), "all are claimed")

				stop()
				advanceTime(answersIn)
				delivered := 0
				if answersIn < drainTime {
					w.Expect(ended).NotTo(Receive())
					close(receiver.answer)
					delivered = 2
				}
				w.Expect(<-ended).To(Succeed())
				w.Expect(queue.Claim(t.Context(), w.controller.currentPolicy(), claimBatch, time.Minute)).To(HaveLen(8))
				page, err := w.store.List(t.Context(), verification.ListQuery{Limit: claimBatch})
				w.Expect(err).NotTo(HaveOccurred())
				for i := range page.Requests {
					if !page.Requests[i].Delivery.DeliveredAt.IsZero() {
						delivered--
					}
				}
				w.Expect(delivered).To(BeZero())
			})
		})
	}
}

// poisoned is a sender that panics at its first event.
type poisoned struct {
	Sender

	once sync.Once
}

func (p *poisoned) Send(ctx context.Context, to webhook.Endpoint, e webhook.Event) (webhook.Result, error) {
	p.once.Do(func() { panic("a bug") })
	return p.Sender.Send(ctx, to, e)
}

func TestRun_aPanicEndsNothing(t *testing.T) {
	w := newScriptedReceiver(t)
	for i := range 10 {
		w.verify(strconv.Itoa(i))
	}
	w.wrap = func(next Sender) Sender { return &poisoned{Sender: next} }
	w.run(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusNoContent) })
	w.Eventually(func(g Gomega) {
		for i := range 10 {
			r, err := w.store.Read(t.Context(), strconv.Itoa(i))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(r.Delivery.DeliveredAt).NotTo(BeZero(), "the request that caused the panic is retried")
		}
	}).WithTimeout(30 * time.Second).Should(Succeed())
}
