package project

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
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
	// Delays before the first and the last retry of a failed project.
	firstRetry, lastRetry = 100 * time.Millisecond, 2 * time.Minute
	// gatewayPeriod is how often the Gateway API is discovered.
	gatewayPeriod = 30 * time.Second
)

// Scheme returns the API types that the controller uses.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, verifyv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register API types: %w", err)
		}
	}
	return scheme, nil
}

// CacheOptions returns the options of the controller's cache: it holds all projects, and of other kinds only objects that belong
// to one. No namespaces mean all of them.
func CacheOptions(namespaces []string) (cache.Options, error) {
	ofProjects, err := labels.NewRequirement(verifyv1.ProjectLabel, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, fmt.Errorf("select children: %w", err)
	}
	o := cache.Options{
		DefaultLabelSelector: labels.NewSelector().Add(*ofProjects),
		ByObject: map[client.Object]cache.ByObject{
			// The managed fields of children are needed: they show which fields are ours.
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

// CachedObjects returns an empty object of each kind that the cache always holds, projects first.
func CachedObjects() []client.Object {
	return append([]client.Object{&verifyv1.VerificationProject{}}, apply.Objects(false)...)
}

// ClientOptions returns the options of the controller's client: it reads HTTPRoutes from the cache too, which have no Go type
// here.
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
	return &Controller{Options: o, began: o.Clock.Now()}
}

// Register adds the controller to a manager, to run while that leads. The manager must use Scheme, CacheOptions and
// ClientOptions.
func (c *Controller) Register(ctx context.Context, mgr manager.Manager) error {
	resources, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("create discovery client: %w", err)
	}
	err = c.useCluster(ctx, cluster{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), cache: mgr.GetCache(),
		recorder: mgr.GetEventRecorder("phoneproof-operator"), discover: resources.ServerResourcesForGroupVersionWithContext,
	})
	if err != nil {
		return fmt.Errorf("connect to cluster: %w", err)
	}
	made, err := controller.New("project", mgr, controller.Options{
		Reconciler:              reconcile.AsReconciler(c.client, c),
		MaxConcurrentReconciles: workers,
		ReconciliationTimeout:   reconciliationTimeout,
		RateLimiter:             newRateLimiter(),
	})
	if err != nil {
		return fmt.Errorf("create project controller: %w", err)
	}
	for _, s := range c.listSources(mgr.GetCache()) {
		if err := made.Watch(s); err != nil {
			return fmt.Errorf("watch project controller source: %w", err)
		}
	}
	return nil
}

// newRateLimiter returns the limiter of the retries of failed projects.
func newRateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry)
}

// cluster is the controller's access to a cluster.
type cluster struct {
	client   client.Client // reads from the cache
	live     client.Reader
	cache    cache.Cache
	recorder events.EventRecorder
	// discover lists the resources of a group and version.
	discover func(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
}

// useCluster makes the controller work on a cluster.
func (c *Controller) useCluster(ctx context.Context, in cluster) error {
	if err := indexFields(ctx, in.cache); err != nil {
		return fmt.Errorf("index fields: %w", err)
	}
	c.client, c.live, c.recorder = in.client, in.live, in.recorder
	objects := apply.Objects(true)
	route := objects[len(objects)-1]
	c.gateway = &gateway{
		discover: in.discover,
		live:     c.live, namespaces: c.Namespaces,
		routes: func() source.SyncingSource {
			return source.Kind(in.cache, route, ofChildren(), withoutStatus())
		},
		index: func(ctx context.Context) error {
			return in.cache.IndexField(ctx, route, hostIndex, indexByHost)
		},
		unwatch:  func(ctx context.Context) error { return in.cache.RemoveInformer(ctx, route) },
		projects: c.client, period: c.GatewayPeriod, log: c.Log, known: make(chan struct{}),
	}
	c.applier = apply.New(apply.Options{Client: c.client, Live: c.live, HTTPRoutes: c.gateway.isPresent})
	return nil
}

// listSources returns the sources of the controller.
func (c *Controller) listSources(cache cache.Cache) []source.Source {
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
			list = append(list, source.Kind(cache, object, ofChildren())) // its status depends on its pods
		default:
			list = append(list, source.Kind(cache, object, ofChildren(), withoutStatus()))
		}
	}
	return list
}
