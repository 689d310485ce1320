package apiproxy_test

import (
	"strconv"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// seenHolders are the holders of one lease that an informer reported, in order.
type seenHolders struct {
	mu  sync.Mutex
	all []string
}

func (s *seenHolders) record(item any) {
	l, ok := item.(*coordinationv1.Lease)
	if !ok || l.Name != "aging" || l.Spec.HolderIdentity == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, *l.Spec.HolderIdentity)
}

func (s *seenHolders) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.all...)
}

// last returns the last holder that the informer reported, or "".
func (s *seenHolders) last() string {
	if seen := s.list(); len(seen) > 0 {
		return seen[len(seen)-1]
	}
	return ""
}

// startInformer starts an informer through the proxy, and returns the holders that it reports. It ends with the test.
func (w *fixture) startInformer(t *testing.T) *seenHolders {
	t.Helper()
	g := NewWithT(t)
	config := rest.CopyConfig(w.config)
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	factory := informers.NewSharedInformerFactoryWithOptions(kubernetes.NewForConfigOrDie(config), 0, informers.WithNamespace(namespace))
	seen := &seenHolders{}
	_, err := factory.Coordination().V1().Leases().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: seen.record, UpdateFunc: func(_, now any) { seen.record(now) },
	})
	g.Expect(err).NotTo(HaveOccurred())
	stop := make(chan struct{})
	t.Cleanup(factory.Shutdown)
	t.Cleanup(func() { close(stop) })
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	return seen
}

// changeHolders sets five holders of the lease, one after the other, and returns them.
func (w *fixture) changeHolders(t *testing.T) (holders []string) {
	t.Helper()
	g, ctx := NewWithT(t), t.Context()
	for i := range 5 {
		holders = append(holders, strconv.Itoa(i))
		g.Expect(w.setHolder(ctx, w.direct, "aging", holders[i])).To(Succeed())
	}
	return holders
}

// testRepeatsOldStates makes a real informer go back in time and return to the present.
func (w *fixture) testRepeatsOldStates(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	_, err := w.direct.Create(ctx, newLease("aging"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	seen := w.startInformer(t)
	holders := w.changeHolders(t)
	g.Eventually(seen.list).WithTimeout(patience).Should(Equal(holders), "in order")

	w.proxy.RepeatWatches(3)
	g.Eventually(w.proxy.Repeated).WithTimeout(patience).Should(Equal(3))
	w.proxy.RepeatWatches(0)
	g.Expect(w.setHolder(ctx, w.direct, "aging", "new")).To(Succeed())
	g.Eventually(seen.list).WithTimeout(patience).Should(Equal(append(holders, "2", "3", "4", "new")), "old states again, then the present")
}

// testRepeatsWhatIsKnown makes an informer go back further than the API server can: it keeps no states from before its start.
func (w *fixture) testRepeatsWhatIsKnown(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	g.Expect(w.plane.StopAPIServer()).To(Succeed())
	g.Expect(w.plane.StartAPIServer()).To(Succeed())
	seen := w.startInformer(t)
	holders := w.changeHolders(t)
	g.Eventually(seen.last).WithTimeout(patience).Should(Equal(holders[4]))

	before := w.proxy.Repeated()
	w.proxy.RepeatWatches(1 << 20)
	g.Eventually(w.proxy.Repeated).WithTimeout(patience).Should(BeNumerically(">", before))
	w.proxy.RepeatWatches(0)
	g.Expect(w.setHolder(ctx, w.direct, "aging", "newer")).To(Succeed())
	g.Eventually(seen.last).WithTimeout(patience).Should(Equal("newer"), "the present")
}
