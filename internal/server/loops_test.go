package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/projectstatus"
	"github.com/phoneproof/phoneproof/controllers/request"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/store/kubernetes"
	"github.com/phoneproof/phoneproof/internal/store/memory"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/internal/webhook"
)

// objects is a project's watch in memory.
type objects struct {
	mu       sync.Mutex
	stored   []kubernetes.Change
	listener map[int]func(kubernetes.Change)
	next     int
}

// Watch implements watchedObjects.
func (o *objects) Watch(listener func(kubernetes.Change)) (stop func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.listener == nil {
		o.listener = map[int]func(kubernetes.Change){}
	}
	number := o.next
	o.next++
	o.listener[number] = listener
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.listener, number)
	}
}

// All implements watchedObjects.
func (o *objects) All() []kubernetes.Change {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]kubernetes.Change(nil), o.stored...)
}

func (o *objects) change(c kubernetes.Change) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stored = append(o.stored, c)
	for _, listener := range o.listener {
		listener(c)
	}
}

func (o *objects) listeners() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.listener)
}

// callRecorder records which loop reads which object; its answers keep no loop busy.
type callRecorder struct {
	verification.Store

	names chan string
}

// ReadCached is the first call of the request loop.
func (a callRecorder) ReadCached(_ context.Context, id string) (verification.Request, error) {
	a.names <- "request " + id
	return verification.Request{}, verification.ErrNotFound
}

// ReadManual is the first call of the loop of manual requests.
func (a callRecorder) ReadManual(_ context.Context, name string) (kubernetes.ManualRequest, error) {
	a.names <- "draft " + name
	return kubernetes.ManualRequest{}, verification.ErrNotFound
}

// CompleteManual is never called.
func (callRecorder) CompleteManual(
	context.Context, string, kubernetes.Completion, verification.Limits,
) (verification.Request, error) {
	return verification.Request{}, errors.New("unexpected")
}

// RejectManual is never called.
func (callRecorder) RejectManual(context.Context, string, string, string) error {
	return errors.New("unexpected")
}

// Project is the first call of the redelivery loop.
func (a callRecorder) Project() *verifyv1.VerificationProject {
	a.names <- "redelivery"
	return nil
}

// Observe brings no changes.
func (callRecorder) Observe() (changes <-chan struct{}, cancel func()) { return nil, func() {} }

// missingProject is a project that does not exist. It records that the report loop read it.
type missingProject struct {
	callRecorder

	once *sync.Once
}

// Project is the first call of the report loop.
func (r missingProject) Project() *verifyv1.VerificationProject {
	r.once.Do(func() { r.names <- "report" })
	return nil
}

// Current is never called.
func (missingProject) Current() *settings.Settings { return nil }

// Subscribe brings no changes.
func (missingProject) Subscribe() (changes <-chan struct{}, cancel func()) { return nil, func() {} }

func TestTerm_handsEachLoopWhatIsItsOwn(t *testing.T) {
	g := NewWithT(t)
	watch := &objects{}
	watch.change(kubernetes.Change{ID: "before", Kind: kubernetes.KindRequest})
	var settingsChanges verification.Notifier
	store := callRecorder{memory.NewBackend(memory.Options{}).Open("shop/acme"), make(chan string, 10)}
	loops := newTermLoops(termOptions{
		Objects:  watch,
		Settings: func() (<-chan struct{}, func()) { return settingsChanges.Subscribe("") },
		Request: request.New(request.Options{
			Store: store, Settings: func() *settings.Settings { return &settings.Settings{} }, Log: logr.Discard(),
		}),
		Manual:     request.ManualOptions{Store: store, Log: logr.Discard()},
		Redelivery: request.RedeliveryOptions{Projects: store, Log: logr.Discard()},
		Status: projectstatus.Options{
			Projects: missingProject{store, &sync.Once{}}, Board: projectstatus.NewBoard(), Log: logr.Discard(),
			Storage: func(context.Context) error { return nil },
		},
	})
	g.Expect(loops).To(HaveLen(4))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- runLoops(ctx, loops) }()
	expect := func(names ...string) {
		t.Helper()
		var got []string
		for range names {
			select {
			case name := <-store.names:
				got = append(got, name)
			case <-time.After(30 * time.Second):
				t.Fatal("no loop reads any more, after ", got)
			}
		}
		g.Expect(got).To(ConsistOf(names))
	}
	expect("request before", "redelivery", "report")
	g.Eventually(watch.listeners).WithTimeout(30 * time.Second).Should(Equal(2))

	watch.change(kubernetes.Change{ID: "new", Kind: kubernetes.KindRequest})
	watch.change(kubernetes.Change{ID: "by-hand", Kind: kubernetes.KindIncomplete})
	watch.change(kubernetes.Change{ID: "poison", Kind: kubernetes.KindMalformed})
	watch.change(kubernetes.Change{ID: "gone", Kind: kubernetes.KindGone})
	expect("request new", "draft by-hand", "draft poison")

	settingsChanges.Notify("")
	expect("request before", "request new", "draft by-hand", "draft poison")

	stop()
	g.Eventually(ended).WithTimeout(30 * time.Second).Should(Receive(BeNil()))
	g.Eventually(watch.listeners).WithTimeout(30 * time.Second).Should(BeZero())
	g.Expect(store.names).To(BeEmpty())
}

// failingStoreReceiver takes every event, signals it, and lets the store fail from then on.
type failingStoreReceiver struct {
	took  chan struct{}
	store *memory.Backend
}

func (failingStoreReceiver) Busy(webhook.Endpoint) error { return nil }
func (failingStoreReceiver) Free(webhook.Endpoint) int   { return 1 }

func (r failingStoreReceiver) Send(context.Context, webhook.Endpoint, webhook.Event) (webhook.Result, error) {
	r.store.Fail(errors.New("no space left on device"))
	r.took <- struct{}{}
	return webhook.Result{Verdict: webhook.Verdict{Outcome: webhook.Delivered, StatusCode: http.StatusNoContent}}, nil
}

// TestTerm_recordsWhatTheTermBeforeCouldNot leads again in the same process, after the store was down for the rest of the first
// term: nothing is sent twice.
func TestTerm_recordsWhatTheTermBeforeCouldNot(t *testing.T) {
	g := NewWithT(t)
	backend := memory.NewBackend(memory.Options{})
	store := backend.Open("shop/acme")
	number, err := phone.FromE164("+4915123456789")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = store.Create(t.Context(),
		verification.New{ID: "a", Phone: number, Method: verification.WhatsApp, TTL: time.Minute}, verification.Limits{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = store.Update(t.Context(), "a", func(r *verification.Request, now time.Time) error {
		return r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, verification.NewEventKinds(verification.EventSuccess))
	})
	g.Expect(err).NotTo(HaveOccurred())
	watch := &objects{}
	watch.change(kubernetes.Change{ID: "a", Kind: kubernetes.KindRequest})
	sender := failingStoreReceiver{make(chan struct{}, 10), backend}
	terms := termOptions{
		Objects: watch, Settings: missingProject{}.Subscribe,
		Request: request.New(request.Options{
			Store: store, Sender: sender, Log: logr.Discard(),
			Settings: func() *settings.Settings {
				return &settings.Settings{Retention: time.Hour, Webhook: &settings.Webhook{Events: verification.NewEventKinds(verification.EventSuccess)}}
			},
		}),
	}
	lead := func(until func()) {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- runLoops(ctx, slices.DeleteFunc(newTermLoops(terms), func(l namedLoop) bool { return l.name != "lifecycle" }))
		}()
		until()
		stop()
		g.Eventually(ended).WithTimeout(30 * time.Second).Should(Receive(BeNil()))
	}
	lead(func() {
		g.Eventually(sender.took).WithTimeout(30 * time.Second).Should(Receive())
	})
	backend.Fail(nil)
	lead(func() {
		g.Eventually(func() (verification.Request, error) { return store.Read(t.Context(), "a") }).
			WithTimeout(30 * time.Second).Should(HaveField("Delivery.DeliveredAt", Not(BeZero())))
	})
	g.Expect(sender.took).To(BeEmpty())
}

func TestRunLoops_endsAllWhenOneFails(t *testing.T) {
	g := NewWithT(t)
	broken := errors.New("broken")
	err := runLoops(t.Context(), []namedLoop{
		{"patient", func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		}},
		{"hasty", func(context.Context) error { return broken }},
	})
	g.Expect(err).To(MatchError(broken))
	g.Expect(err).To(MatchError(ContainSubstring("hasty controller: ")))
}
