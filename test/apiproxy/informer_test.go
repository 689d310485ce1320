package apiproxy_test

import (
	"errors"
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

func errorsAs[T any](err error, target *T) bool { return errors.As(err, target) }

// sightings are the holders of one lease that an informer told of, in order.
type sightings struct {
	mu  sync.Mutex
	all []string
}

func (s *sightings) see(item any) {
	l, ok := item.(*coordinationv1.Lease)
	if !ok || l.Name != "aging" || l.Spec.HolderIdentity == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, *l.Spec.HolderIdentity)
}

func (s *sightings) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.all...)
}

// testRepeatsOldStates has a real informer go back in time and come back to the present.
func (w *world) testRepeatsOldStates(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	_, err := w.direct.Create(ctx, lease("aging"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	config := rest.CopyConfig(w.config)
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	factory := informers.NewSharedInformerFactoryWithOptions(kubernetes.NewForConfigOrDie(config), 0, informers.WithNamespace(namespace))
	informer := factory.Coordination().V1().Leases().Informer()
	seen := &sightings{}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: seen.see, UpdateFunc: func(_, now any) { seen.see(now) },
	})
	g.Expect(err).NotTo(HaveOccurred())
	stop := make(chan struct{})
	defer factory.Shutdown()
	defer close(stop)
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	var holders []string
	for i := range 5 {
		holders = append(holders, strconv.Itoa(i))
		g.Expect(w.hold(ctx, w.direct, "aging", strconv.Itoa(i))).To(Succeed())
	}
	g.Eventually(seen.seen).WithTimeout(patience).Should(Equal(holders), "in order")

	w.proxy.RepeatWatches(3)
	g.Eventually(w.proxy.Repeated).WithTimeout(patience).Should(Equal(3))
	w.proxy.RepeatWatches(0)
	g.Expect(w.hold(ctx, w.direct, "aging", "new")).To(Succeed())
	g.Eventually(seen.seen).WithTimeout(patience).Should(Equal(append(holders, "2", "3", "4", "new")), "old states again, and then the present")
}
