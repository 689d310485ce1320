package project

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/render"
)

// queue is the controller's workqueue.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// gateway discovers whether the cluster has the Gateway API's HTTPRoute, which may be installed at any time, even after the
// operator. It is a source of the controller: no project is reconciled before the first result, and when the API appears, the
// projects that wait for it are requeued, and its objects are watched from then on.
//
// It polls the API server, because a watch on CustomResourceDefinitions would need a right on all of them. HTTPRoutes that cannot
// be read, for a missing right or a broken definition, count as absent: they must not block the projects.
type gateway struct {
	// discover lists the resources of a group and version.
	discover func(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
	live     client.Reader // reads from the API server, not from the cache
	// routes returns a new source of HTTPRoutes. A source starts once, and one that failed to start may still be ending.
	routes func() source.SyncingSource
	// index adds the index of HTTPRoutes by their hosts, once per watch.
	index    func(ctx context.Context) error
	unwatch  func(ctx context.Context) error
	projects client.Reader
	// namespaces are the watched ones; none for all.
	namespaces []string
	period     time.Duration
	log        logr.Logger

	found    atomic.Bool
	watching bool
	unread   atomic.Bool // HTTPRoutes are there and cannot be read, which was logged
	once     sync.Once
	known    chan struct{} // closed at the first result
}

// isPresent reports whether the API is available.
func (g *gateway) isPresent() bool { return g.found.Load() }

// IsGatewayUnread reports whether the cluster has HTTPRoutes that cannot be read, which counts as having none.
func (c *Controller) IsGatewayUnread() bool { return c.gateway.unread.Load() }

// String returns the source's name in logs.
func (g *gateway) String() string { return "gateway source" }

// Format prints the name for every verb, because printing the fields would race with pollUntilDone.
func (g *gateway) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, g.String()) }

// Start polls until ctx ends.
func (g *gateway) Start(ctx context.Context, queue queue) error {
	go g.pollUntilDone(ctx, queue)
	return nil
}

// WaitForSync returns at the first result.
func (g *gateway) WaitForSync(ctx context.Context) error {
	select {
	case <-g.known:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("discover HTTPRoutes: %w", ctx.Err())
	}
}

func (g *gateway) pollUntilDone(ctx context.Context, queue queue) {
	ticker := time.NewTicker(g.period)
	defer ticker.Stop()
	for {
		if err := g.pollOnce(ctx, queue); err != nil && ctx.Err() == nil {
			g.log.Error(err, "Gateway API discovery failed, will retry")
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// pollOnce discovers the API once, and acts on a change.
func (g *gateway) pollOnce(ctx context.Context, queue queue) error {
	list, err := g.discover(ctx, render.HTTPRouteKind.GroupVersion().String())
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("discover HTTPRoutes: %w", err)
	}
	found := err == nil && hasHTTPRoute(list)
	if found && !g.watching {
		found = g.ensureWatch(ctx, queue)
	}
	changed := g.found.Swap(found) != found
	g.once.Do(func() { close(g.known) })
	if !changed {
		return nil
	}
	g.log.Info("HTTPRoute availability changed", "found", found)
	return g.requeueProjects(ctx, queue)
}

// gatewayPatience is how long HTTPRoutes may take to be read. It is much less than the time in which all sources of a controller
// must have started.
const gatewayPatience = 20 * time.Second

// ensureWatch makes sure that HTTPRoutes are watched, and reports whether they are. If the API is removed, the watch keeps
// retrying.
func (g *gateway) ensureWatch(ctx context.Context, queue queue) bool {
	err := g.checkReadable(ctx)
	if err == nil {
		err = g.startWatch(ctx, queue)
	}
	if err != nil && !g.unread.Load() && ctx.Err() == nil {
		g.log.Error(err, "list HTTPRoutes failed, treated as absent")
	}
	g.unread.Store(err != nil)
	g.watching = err == nil
	return g.watching
}

// checkReadable lists one HTTPRoute. If that fails, a watch must not start: until it has read everything, all reads of these
// objects from the cache would wait for it.
func (g *gateway) checkReadable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, gatewayPatience)
	defer cancel()
	namespaces := g.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(render.HTTPRouteKind)
		if err := g.live.List(ctx, list, client.InNamespace(namespace), client.Limit(1)); err != nil {
			return fmt.Errorf("list HTTPRoutes: %w", err)
		}
	}
	return nil
}

// startWatch starts the watch and returns when the existing objects are read, or on a failure.
func (g *gateway) startWatch(ctx context.Context, queue queue) error {
	bounded, cancel := context.WithTimeout(ctx, gatewayPatience)
	defer cancel()
	if err := g.index(bounded); err != nil {
		return errors.Join(fmt.Errorf("index HTTPRoutes: %w", err), g.unwatch(ctx))
	}
	routes := g.routes()
	if err := routes.Start(ctx, queue); err != nil {
		return errors.Join(fmt.Errorf("watch HTTPRoutes: %w", err), g.unwatch(ctx))
	}
	if err := routes.WaitForSync(bounded); err != nil {
		return errors.Join(fmt.Errorf("watch HTTPRoutes: %w", err), g.unwatch(ctx))
	}
	return nil
}

// requeueProjects reconciles the projects that want an HTTPRoute.
func (g *gateway) requeueProjects(ctx context.Context, queue queue) error {
	var all verifyv1.VerificationProjectList
	if err := g.projects.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list projects: %w", err)
	}
	for i := range all.Items {
		if project := &all.Items[i]; project.Spec.Expose.HTTPRoute != nil {
			queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(project)})
		}
	}
	return nil
}

func hasHTTPRoute(list *metav1.APIResourceList) bool {
	for i := range list.APIResources {
		if list.APIResources[i].Kind == render.HTTPRouteKind.Kind {
			return true
		}
	}
	return false
}
