package request

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
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
	go func() { ended <- w.controller.Run(ctx, w.controller.Claims(queue)) }()
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
