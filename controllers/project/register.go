package project

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/apply"
)

const (
	// workers is how many projects are reconciled at a time.
	workers = 4
	// reconciliationTimeout ends a reconciliation whose calls hang.
	reconciliationTimeout = time.Minute
	// The first and the longest wait before a project that failed is tried again.
	firstRetry, lastRetry = 100 * time.Millisecond, 2 * time.Minute
	// gatewayPeriod is how often it is asked whether the Gateway API was installed.
	gatewayPeriod = 30 * time.Second
)

// Scheme returns the kinds that the controller works with.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, verifyv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("make scheme: %w", err)
		}
	}
	return scheme, nil
}

// CacheOptions returns what the controller's cache must hold: all projects, and of everything else only what belongs to one.
// No namespaces mean all of them.
func CacheOptions(namespaces []string) (cache.Options, error) {
	ofProjects, err := labels.NewRequirement(verifyv1.ProjectLabel, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, fmt.Errorf("select children: %w", err)
	}
	o := cache.Options{
		DefaultLabelSelector: labels.NewSelector().Add(*ofProjects),
		ByObject: map[client.Object]cache.ByObject{
			// Of the children the managed fields are needed: they tell what is ours.
			&verifyv1.VerificationProject{}: {Label: labels.Everything(), Transform: cache.TransformStripManagedFields()},
		},
	}
	for _, namespace := range namespaces {
		if o.DefaultNamespaces == nil {
			o.DefaultNamespaces = map[string]cache.Config{}
		}
		o.DefaultNamespaces[namespace] = cache.Config{}
	}
	return o, nil
}

// ClientOptions returns how the controller's client reads: HTTPRoutes from the cache too, which have no Go type here.
func ClientOptions() client.Options {
	return client.Options{Cache: &client.CacheOptions{Unstructured: true}}
}

// New returns a controller that is not registered yet.
func New(o Options) *Controller {
	if o.GatewayPeriod == 0 {
		o.GatewayPeriod = gatewayPeriod
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	o.Permissions.grants = o.Permissions.indexGrants()
	return &Controller{Options: o}
}

// Register makes a manager run the controller while it leads. The manager must have been made with Scheme, CacheOptions and
// ClientOptions.
func (c *Controller) Register(ctx context.Context, mgr manager.Manager) error {
	resources, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("make discovery client: %w", err)
	}
	if err := indexFields(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	c.client, c.live, c.recorder = mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("phoneproof-operator")
	objects := apply.Objects(true)
	route := objects[len(objects)-1]
	c.gateway = &gateway{
		discover: resources.ServerResourcesForGroupVersionWithContext,
		live:     c.live, namespaces: c.Namespaces,
		routes: func() source.SyncingSource {
			return source.Kind(mgr.GetCache(), route, c.ofExposures(), withoutStatus())
		},
		index: func(ctx context.Context) error {
			return mgr.GetFieldIndexer().IndexField(ctx, route, hostIndex, indexByHost)
		},
		unwatch:  func(ctx context.Context) error { return mgr.GetCache().RemoveInformer(ctx, route) },
		projects: c.client, period: c.GatewayPeriod, log: c.Log, known: make(chan struct{}),
	}
	c.applier = apply.New(apply.Options{Client: c.client, Live: c.live, HTTPRoutes: c.gateway.present})

	made, err := controller.New("project", mgr, controller.Options{
		Reconciler:              reconcile.AsReconciler(c.client, c),
		MaxConcurrentReconciles: workers,
		ReconciliationTimeout:   reconciliationTimeout,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	})
	if err != nil {
		return fmt.Errorf("make project controller: %w", err)
	}
	for _, s := range c.sources(mgr.GetCache()) {
		if err := made.Watch(s); err != nil {
			return fmt.Errorf("watch for the project controller: %w", err)
		}
	}
	return nil
}

// sources are what brings projects to the controller.
func (c *Controller) sources(cache cache.Cache) []source.Source {
	list := []source.Source{
		source.Func(func(_ context.Context, queue queue) error {
			c.queue = queue
			return nil
		}),
		c.gateway,
		source.Kind[client.Object](cache, &verifyv1.VerificationProject{}, c.ofProjects()),
		source.Kind[client.Object](cache, &appsv1.Deployment{}, c.ofDeployments()),
	}
	for _, object := range apply.Objects(false) {
		switch object.(type) {
		case *appsv1.Deployment:
			list = append(list, source.Kind(cache, object, ofChildren())) // its status is the pods'
		case *networkingv1.Ingress, *corev1.Service:
			list = append(list, source.Kind(cache, object, c.ofExposures(), withoutStatus()))
		default:
			list = append(list, source.Kind(cache, object, ofChildren(), withoutStatus()))
		}
	}
	return list
}
