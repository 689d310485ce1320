package project

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/reference"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/apply"
)

// steppedOperator is an operator without goroutines. It works on the real API server, through the controller's own sources, but
// only inside settle and elapse, and on a clock that only these move. So nothing has to be waited for, and what is not done after
// them is never done.
type steppedOperator struct {
	*Controller
	*requests

	cache      *steppedCache
	queue      *steppedQueue
	limiter    workqueue.TypedRateLimiter[reconcile.Request]
	reconciled int
}

var (
	// steppedClock is ahead of the API server's clock, so that no object is younger than the time at which it is reconciled.
	steppedClock = clocktesting.NewFakeClock(time.Now().Add(time.Hour))
	// operators are those that the running spec has started and not stopped.
	operators []*steppedOperator
)

// startSteppedOperator starts a stepped operator in some namespaces, until it is stopped or the spec ends.
func startSteppedOperator(ctx context.Context, as *rest.Config, o Options, namespaces ...string) *steppedOperator {
	GinkgoHelper()
	as = rest.CopyConfig(as)
	s := &steppedOperator{
		requests: &requests{}, limiter: newRateLimiter(), queue: &steppedQueue{due: map[reconcile.Request]time.Time{}},
	}
	as.Wrap(s.count)
	scheme, err := Scheme()
	Expect(err).NotTo(HaveOccurred())
	live, err := client.New(as, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	resources, err := discovery.NewDiscoveryClientForConfig(as)
	Expect(err).NotTo(HaveOccurred())
	s.cache = newSteppedCache(live, namespaces)
	o.Log, o.Namespaces, o.Clock = GinkgoLogr, namespaces, steppedClock
	s.Controller = New(o)
	Expect(s.useCluster(ctx, cluster{
		client: steppedClient{live, s.cache}, live: live, cache: s.cache, recorder: steppedRecorder{live},
		discover: resources.ServerResourcesForGroupVersionWithContext,
	})).To(Succeed())
	periodic := 0
	for _, from := range s.listSources(s.cache) {
		if _, polls := from.(*gateway); polls {
			periodic++
			continue // it has a goroutine; elapse does its work
		}
		Expect(from.Start(context.WithoutCancel(ctx), s.queue)).To(Succeed())
		if syncing, ok := from.(source.SyncingSource); ok {
			Expect(syncing.WaitForSync(ctx)).To(Succeed())
		}
	}
	Expect(periodic).To(Equal(1))
	operators = append(operators, s)
	DeferCleanup(s.stop)
	return s
}

// stop ends the operator.
func (s *steppedOperator) stop() {
	operators = slices.DeleteFunc(operators, func(other *steppedOperator) bool { return other == s })
}

// settle makes the running operators reconcile what is due, and what that makes due shortly after it, until nothing is. Retries
// and waits that take longer than sharingDelay stay due. The readers of the specs settle first.
func settle(ctx context.Context) {
	GinkgoHelper()
	elapse(ctx, 0)
}

// elapse lets time pass for the running operators, and settles.
func elapse(ctx context.Context, d time.Duration) {
	GinkgoHelper()
	for _, running := range slices.Clone(operators) {
		running.elapse(ctx, d)
	}
}

func (s *steppedOperator) elapse(ctx context.Context, d time.Duration) {
	GinkgoHelper()
	const limit = 200
	end := steppedClock.Now().Add(d)
	if !s.isCrashed() {
		Expect(s.gateway.pollOnce(ctx, s.queue)).To(Succeed())
	}
	for rounds := 0; rounds < limit; {
		if s.isCrashed() {
			return
		}
		s.cache.refresh(ctx)
		next, ok := s.queue.next()
		if !ok || next.After(end) && next.After(steppedClock.Now().Add(sharingDelay)) {
			moveClock(end)
			return
		}
		moveClock(next)
		due := s.queue.takeDue()
		for _, request := range due {
			s.reconcile(ctx, request)
		}
		rounds += min(len(due), 1)
	}
	Fail(fmt.Sprintf("the operator does not settle: %v", s.written()))
}

func moveClock(to time.Time) {
	if to.After(steppedClock.Now()) {
		steppedClock.SetTime(to)
	}
}

// reconcile calls Reconcile, and requeues by its result as controller-runtime does.
func (s *steppedOperator) reconcile(ctx context.Context, request reconcile.Request) {
	s.reconciled++
	result, err := reconcile.AsReconciler(s.client, s.Controller).Reconcile(ctx, request)
	if err != nil {
		s.queue.AddAfter(request, s.limiter.When(request))
		return
	}
	s.limiter.Forget(request)
	if result.RequeueAfter > 0 {
		s.queue.AddAfter(request, result.RequeueAfter)
	}
}

// steppedQueue holds when each request is due.
type steppedQueue struct {
	queue // for the unused methods

	due map[reconcile.Request]time.Time
}

func (q *steppedQueue) Add(request reconcile.Request) { q.AddAfter(request, 0) }

func (q *steppedQueue) AddAfter(request reconcile.Request, after time.Duration) {
	at := steppedClock.Now().Add(after)
	if earlier, ok := q.due[request]; !ok || at.Before(earlier) {
		q.due[request] = at
	}
}

// next returns when the first request is due.
func (q *steppedQueue) next() (at time.Time, ok bool) {
	for _, due := range q.due {
		if !ok || due.Before(at) {
			at, ok = due, true
		}
	}
	return at, ok
}

// takeDue removes the requests that are due now, and returns them.
func (q *steppedQueue) takeDue() (list []reconcile.Request) {
	for request, at := range q.due {
		if !at.After(steppedClock.Now()) {
			list = append(list, request)
			delete(q.due, request)
		}
	}
	slices.SortFunc(list, func(a, b reconcile.Request) int { return strings.Compare(a.String(), b.String()) })
	return list
}

// steppedClient reads from the cache and writes to the API server.
type steppedClient struct {
	client.Client

	cache *steppedCache
}

func (c steppedClient) Get(ctx context.Context, key client.ObjectKey, out client.Object, options ...client.GetOption) error {
	return c.cache.Get(ctx, key, out, options...)
}

func (c steppedClient) List(ctx context.Context, out client.ObjectList, options ...client.ListOption) error {
	return c.cache.List(ctx, out, options...)
}

// steppedCache is the operator's cache: it holds what the API server had at the last refresh.
type steppedCache struct {
	*informertest.FakeInformers

	reader     *indexedReader
	live       client.Client
	options    cache.Options
	namespaces []string
	revision   string // of the API server's store at the last refresh
}

func newSteppedCache(live client.Client, namespaces []string) *steppedCache {
	GinkgoHelper()
	options, err := CacheOptions(namespaces)
	Expect(err).NotTo(HaveOccurred())
	c := &steppedCache{
		FakeInformers: &informertest.FakeInformers{Scheme: live.Scheme()},
		reader:        newReader(), live: live, options: options, namespaces: slices.Collect(maps.Keys(options.DefaultNamespaces)),
	}
	if len(c.namespaces) == 0 {
		c.namespaces = []string{metav1.NamespaceAll}
	}
	return c
}

func (c *steppedCache) Get(ctx context.Context, key client.ObjectKey, out client.Object, options ...client.GetOption) error {
	return c.reader.Get(ctx, key, out, options...)
}

func (c *steppedCache) List(ctx context.Context, out client.ObjectList, options ...client.ListOption) error {
	return c.reader.List(ctx, out, options...)
}

func (c *steppedCache) IndexField(ctx context.Context, object client.Object, field string, values client.IndexerFunc) error {
	return c.reader.IndexField(ctx, object, field, values)
}

func (c *steppedCache) RemoveInformer(ctx context.Context, object client.Object) error {
	c.reader.removeKind(object)
	return c.FakeInformers.RemoveInformer(ctx, object)
}

// refresh reads all objects that are watched, and notifies the watches of what differs.
func (c *steppedCache) refresh(ctx context.Context) {
	GinkgoHelper()
	// Any list has the revision of the API server's whole store, which has no watch cache here.
	var probe eventsv1.EventList
	Expect(admin.List(ctx, &probe, client.InNamespace(operatorNamespace), client.Limit(1))).To(Succeed())
	revision := fmt.Sprint(probe.ResourceVersion, len(c.InformersByGVK))
	if revision == c.revision {
		return
	}
	c.revision = revision
	kinds := append([]client.Object{&verifyv1.VerificationProject{}}, apply.Objects(true)...)
	now := make([][]client.Object, len(kinds))
	errs := make([]error, len(kinds))
	var reading sync.WaitGroup
	for i, kind := range kinds {
		if c.findInformer(kind) != nil {
			reading.Go(func() { now[i], errs[i] = c.readKind(ctx, kind) })
		}
	}
	reading.Wait()
	var notify []func()
	for i, kind := range kinds {
		informer := c.findInformer(kind)
		if informer == nil || apierrors.IsNotFound(errs[i]) || meta.IsNoMatchError(errs[i]) {
			continue // not watched, or removed from the API server, which a watch survives
		}
		Expect(errs[i]).NotTo(HaveOccurred())
		notify = append(notify, c.reader.replaceKind(kind, now[i], informer)...)
	}
	for _, do := range notify {
		do()
	}
}

// findInformer returns the informer of a kind; nil if it is not watched.
func (c *steppedCache) findInformer(kind client.Object) *controllertest.FakeInformer {
	GinkgoHelper()
	gvk, err := c.live.GroupVersionKindFor(kind)
	Expect(err).NotTo(HaveOccurred())
	informer, _ := c.InformersByGVK[gvk].(*controllertest.FakeInformer)
	return informer
}

// readKind reads all objects of a kind that the operator's cache would hold.
func (c *steppedCache) readKind(ctx context.Context, kind client.Object) (objects []client.Object, err error) {
	gvk, err := c.live.GroupVersionKindFor(kind)
	if err != nil {
		return nil, err
	}
	selector, transform := c.options.DefaultLabelSelector, func(object any) (any, error) { return object, nil }
	if _, ok := kind.(*verifyv1.VerificationProject); ok {
		for _, ofProjects := range c.options.ByObject {
			selector, transform = ofProjects.Label, ofProjects.Transform
		}
	}
	for _, namespace := range c.namespaces {
		var list client.ObjectList = newList(gvk)
		if typed, err := c.live.Scheme().New(gvk.GroupVersion().WithKind(gvk.Kind + "List")); err == nil {
			list = typed.(client.ObjectList)
		}
		if err := c.live.List(ctx, list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
			return nil, err
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			kept, err := transform(item)
			objects = append(objects, kept.(client.Object))
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// steppedRecorder writes each Event at once, with the operator's rights.
type steppedRecorder struct{ client.Client }

func (r steppedRecorder) Eventf(about, _ runtime.Object, kind, reason, action, text string, args ...any) {
	regarding, err := reference.GetReference(r.Scheme(), about)
	Expect(err).NotTo(HaveOccurred())
	err = r.Create(context.Background(), &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: regarding.Namespace, GenerateName: "stepped-"},
		EventTime:  metav1.NewMicroTime(steppedClock.Now()), ReportingController: "phoneproof-operator", ReportingInstance: "stepped",
		Action: action, Reason: reason, Regarding: *regarding, Note: fmt.Sprintf(text, args...), Type: kind,
	})
	if !errors.Is(err, errCrashed) {
		Expect(err).NotTo(HaveOccurred())
	}
}
