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

// queue is the controller's.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// gateway knows whether the cluster has the Gateway API's HTTPRoute, which may be installed at any time, also after the
// operator. It is a source of the controller: no project is reconciled before the first answer, and when the API comes,
// the projects that wait for it are, and its objects are watched from then on.
//
// The API server is asked now and then, because a watch on CustomResourceDefinitions would need a right on all of them.
// HTTPRoutes that cannot be read, for want of a right or because their definition is broken, count as absent: they must not
// hold up the projects.
type gateway struct {
	// discover lists the resources of a group and version.
	discover func(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
	live     client.Reader // asks the API server itself
	// routes makes a source of HTTPRoutes. A source begins once: one that did not may still be about to end.
	routes func() source.SyncingSource
	// index makes HTTPRoutes be found by their hosts, once per watch.
	index    func(ctx context.Context) error
	unwatch  func(ctx context.Context) error
	projects client.Reader
	// namespaces are those that are watched; none for all.
	namespaces []string
	period     time.Duration
	log        logr.Logger

	found    atomic.Bool
	watching bool
	told     bool // that there are HTTPRoutes which cannot be read
	once     sync.Once
	known    chan struct{} // closed with the first answer
}

// present tells whether the API is there.
func (g *gateway) present() bool { return g.found.Load() }

// String returns the source's name in logs.
func (g *gateway) String() string { return "gateway source" }

// Format prints the name for every verb: printing the fields would read them while follow writes them.
func (g *gateway) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, g.String()) }

// Start asks from now on, until ctx ends.
func (g *gateway) Start(ctx context.Context, queue queue) error {
	go g.follow(ctx, queue)
	return nil
}

// WaitForSync returns when the first answer is there.
func (g *gateway) WaitForSync(ctx context.Context) error {
	select {
	case <-g.known:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("ask whether the cluster has HTTPRoutes: %w", ctx.Err())
	}
}

func (g *gateway) follow(ctx context.Context, queue queue) {
	ticker := time.NewTicker(g.period)
	defer ticker.Stop()
	for {
		if err := g.look(ctx, queue); err != nil && ctx.Err() == nil {
			g.log.Error(err, "the Gateway API waits")
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// look asks once, and acts on a new answer.
func (g *gateway) look(ctx context.Context, queue queue) error {
	list, err := g.discover(ctx, render.HTTPRouteKind.GroupVersion().String())
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("ask whether the cluster has HTTPRoutes: %w", err)
	}
	found := err == nil && serves(list)
	if found && !g.watching {
		found = g.watch(ctx, queue)
	}
	changed := g.found.Swap(found) != found
	g.once.Do(func() { close(g.known) })
	if !changed {
		return nil
	}
	g.log.Info("the cluster's HTTPRoute", "found", found)
	return g.wake(ctx, queue)
}

// gatewayPatience is how long HTTPRoutes may take to be read. It is much less than the time in which all sources of a
// controller must have begun.
const gatewayPatience = 20 * time.Second

// watch makes sure that HTTPRoutes are watched, and tells whether they are. Should the API go away again, the watch keeps
// trying.
func (g *gateway) watch(ctx context.Context, queue queue) bool {
	err := g.list(ctx)
	if err == nil {
		err = g.begin(ctx, queue)
	}
	if err != nil && !g.told && ctx.Err() == nil {
		g.log.Error(err, "the cluster has HTTPRoutes that cannot be read, so there are none for now")
	}
	g.told, g.watching = err != nil, err == nil
	return g.watching
}

// list asks for one HTTPRoute. Where that fails a watch must not begin: until it has read everything, whatever is read from
// the same cache waits for it.
func (g *gateway) list(ctx context.Context) error {
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

// begin starts the watch and returns when what is there has come, or is not going to.
func (g *gateway) begin(ctx context.Context, queue queue) error {
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

// wake reconciles the projects that want an HTTPRoute, and those that wait for a host which an HTTPRoute may have had.
func (g *gateway) wake(ctx context.Context, queue queue) error {
	var all verifyv1.VerificationProjectList
	if err := g.projects.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list projects: %w", err)
	}
	for i := range all.Items {
		if project := &all.Items[i]; project.Spec.Expose.HTTPRoute != nil || waitsForHost(project) {
			queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(project)})
		}
	}
	return nil
}

func serves(list *metav1.APIResourceList) bool {
	for i := range list.APIResources {
		if list.APIResources[i].Kind == render.HTTPRouteKind.Kind {
			return true
		}
	}
	return false
}
