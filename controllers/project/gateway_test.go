package project

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/render"
)

var _ = Describe("HTTPRoutes that the operator may not read", func() {
	It("count as absent and block no project until they can be read", func(ctx SpecContext) {
		const name = "phoneproof-trimmed"
		installGatewayAPI(ctx)
		namespace := newNamespace(ctx)
		Expect(admin.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: name}})).To(Succeed())
		bindRole(ctx, namespace, name)
		role := &rbacv1.Role{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, role)).To(Succeed())
		all := slices.Clone(role.Rules)
		role.Rules = slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
			return slices.Contains(rule.Resources, "httproutes")
		})
		Expect(role.Rules).To(HaveLen(len(all) - 1))
		Expect(admin.Update(ctx, role)).To(Succeed())
		trimmed := asAccount(ctx, operatorNamespace, name)
		routes := ContainElement(HavePrefix("httproutes"))
		awaitRights(ctx, trimmed, namespace, And(ContainElement(HavePrefix("deployments")), Not(routes)))

		startSteppedOperator(ctx, trimmed, usual(), namespace)
		without := create(ctx, newProject(namespace, "without"))
		makeReady(ctx, without)
		with := newProject(namespace, "with")
		with.Spec.Expose.HTTPRoute = &verifyv1.HTTPRouteSettings{ParentRefs: []verifyv1.GatewayRef{{Name: "public"}}}
		create(ctx, with)
		expectCondition(ctx, with, verifyv1.ConditionReady, metav1.ConditionFalse, verifyv1.ReasonGatewayAPIMissing)

		role.Rules = all
		Expect(admin.Update(ctx, role)).To(Succeed())
		awaitRights(ctx, trimmed, namespace, routes)
		makeReady(ctx, with)
		Expect(metav1.IsControlledBy(route(ctx, with), with)).To(BeTrue())
	})
})

var _ = Describe("A watch of HTTPRoutes that fails to start", func() {
	It("is removed, and retried", func(ctx SpecContext) {
		installGatewayAPI(ctx)
		var asked, waited, unwatched int
		g := &gateway{
			discover: func(context.Context, string) (*metav1.APIResourceList, error) {
				return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Kind: render.HTTPRouteKind.Kind}}}, nil
			},
			live: admin, projects: admin, log: GinkgoLogr, known: make(chan struct{}),
			routes: func() source.SyncingSource {
				return fakeSource(func(ctx context.Context) error {
					waited++
					deadline, ok := ctx.Deadline()
					Expect(ok).To(BeTrue())
					Expect(time.Until(deadline)).To(BeNumerically("<=", gatewayPatience))
					if waited == 1 {
						return errors.New("not all of them can be read")
					}
					return nil
				})
			},
			index: func(context.Context) error { return nil },
			unwatch: func(context.Context) error {
				unwatched++
				return nil
			},
		}
		requests := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		DeferCleanup(requests.ShutDown)
		for _, present := range []bool{false, true, true} {
			asked++
			Expect(g.pollOnce(ctx, requests)).To(Succeed())
			Expect(g.isPresent()).To(Equal(present), "answer %d", asked)
			Expect(g.known).To(BeClosed(), "the projects are held up")
		}
		Expect([]int{waited, unwatched}).To(Equal([]int{2, 1}))
	})

	It("shares no state with the next one while it ends", func(ctx SpecContext) {
		// The late goroutine is controller-runtime's, so only the race detector sees what it accesses.
		g := &gateway{
			log: GinkgoLogr,
			routes: func() source.SyncingSource {
				never := &informertest.FakeInformers{Error: errors.New("no informer")}
				return source.Kind[client.Object](never, &corev1.ConfigMap{}, ofChildren())
			},
			index:   func(context.Context) error { return nil },
			unwatch: func(context.Context) error { return nil },
		}
		requests := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		DeferCleanup(requests.ShutDown)
		for range 20 {
			impatient, cancel := context.WithTimeout(ctx, time.Millisecond)
			Expect(g.startWatch(impatient, requests)).NotTo(Succeed())
			cancel()
		}
	})
})

// controller-runtime prints a source that did not sync in time, while the source runs; only the race detector sees that.
var _ = Describe("The sources of the controller", func() {
	It("can be printed with any verb while they run", func(ctx SpecContext) {
		var answers atomic.Int64
		g := &gateway{
			discover: func(context.Context, string) (*metav1.APIResourceList, error) {
				kind := render.HTTPRouteKind.Kind
				if answers.Add(1)%2 == 0 {
					kind = "another"
				}
				return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Kind: kind}}}, nil
			},
			live: admin, projects: admin, log: GinkgoLogr, known: make(chan struct{}), period: time.Nanosecond,
			routes: func() source.SyncingSource { return fakeSource(func(context.Context) error { return nil }) },
			index:  func(context.Context) error { return nil },
		}
		installGatewayAPI(ctx)
		requests := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		DeferCleanup(requests.ShutDown)
		running, cancel := context.WithCancel(ctx)
		defer cancel()
		Expect(g.Start(running, requests)).To(Succeed())

		c := New(Options{})
		c.gateway = g
		for asked := answers.Load(); answers.Load() < asked+10; {
			for _, s := range c.listSources(&informertest.FakeInformers{}) {
				Expect(fmt.Sprintf("%v %+v %s", s, s, s)).NotTo(ContainSubstring("{"), "it prints its fields")
			}
			Expect(fmt.Sprintf("%#v, %d", g, g)).To(Equal("gateway source, gateway source"))
		}
	})
})

// fakeSource is a source whose sync is the function.
type fakeSource func(context.Context) error

func (b fakeSource) Start(context.Context, queue) error { return nil }

func (b fakeSource) WaitForSync(ctx context.Context) error { return b(ctx) }

// installGatewayAPI installs HTTPRoutes in the API server until the spec ends.
func installGatewayAPI(ctx context.Context) client.Object {
	GinkgoHelper()
	crd := manifest("test/controlplane/testdata/httproute.yaml")
	Expect(admin.Create(ctx, crd)).To(Succeed())
	DeferCleanup(removeGatewayAPI, client.Object(crd))
	Eventually(func(g Gomega) {
		g.Expect(admin.List(ctx, newList(render.HTTPRouteKind))).To(Succeed())
		found, err := clients.ServerResourcesForGroupVersion(render.HTTPRouteKind.GroupVersion().String())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(hasHTTPRoute(found)).To(BeTrue())
	}).WithContext(ctx).Should(Succeed(), "an installed kind is not served at once")
	return crd
}

// removeGatewayAPI removes HTTPRoutes from the API server.
func removeGatewayAPI(ctx context.Context, crd client.Object) {
	GinkgoHelper()
	Expect(client.IgnoreNotFound(admin.Delete(ctx, crd))).To(Succeed())
	gone := crd.DeepCopyObject().(client.Object)
	Eventually(func() error { return admin.Get(ctx, client.ObjectKeyFromObject(crd), gone) }).WithContext(ctx).
		Should(Satisfy(apierrors.IsNotFound))
}

// route returns the project's current HTTPRoute; an empty one if there is none.
func route(ctx context.Context, project *verifyv1.VerificationProject) *unstructured.Unstructured {
	GinkgoHelper()
	settle(ctx)
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(render.HTTPRouteKind)
	err := admin.Get(ctx, client.ObjectKey{Namespace: project.Namespace, Name: render.Name(project.Name)}, found)
	if !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		Expect(err).NotTo(HaveOccurred())
	}
	return found
}
