package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/phoneproof/phoneproof/controllers/project"
)

const (
	probePeriod  = 30 * time.Second
	probeTimeout = 10 * time.Second
	// minUptime is how long a process runs at least before it ends for a namespace. The kubelet's delays between restarts do not grow
	// then.
	minUptime = 10 * time.Minute
	// unreadCause is why the operator cannot read a namespace: with rights in namespaces alone both are Forbidden.
	unreadCause = "missing, or lacks the chart's Roles"
	// returnedNote says when a namespace that was left out is served.
	returnedNote = "can be read, and is served after a restart: by itself within ten minutes, or at once by kubectl rollout restart"
)

// namespaces are those of --watch-namespace. The manager waits for its cache, and the cache for each of its namespaces, so one that
// cannot be read is left out when the process starts; the process ends when that namespace can be read.
type namespaces struct {
	watched           []string
	period, minUptime time.Duration
	client            client.Client
	gauge             *prometheus.GaugeVec
	log               logr.Logger
	cached            []string // those that the cache holds
	unread            atomic.Pointer[[]string]
}

// newNamespaces returns the namespaces of the options, of which none is read yet.
func (o *Options) newNamespaces(config *rest.Config, log logr.Logger) (*namespaces, error) {
	scheme, err := project.Scheme()
	if err != nil {
		return nil, fmt.Errorf("make scheme: %w", err)
	}
	reader, err := client.New(rest.AddUserAgent(config, "namespaces"), client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	n := &namespaces{
		watched: o.Namespaces, period: cmp.Or(o.probePeriod, probePeriod), minUptime: cmp.Or(o.probePeriod, minUptime), client: reader, log: log,
		gauge: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "phoneproof_operator_namespace_unread",
			Help: "1 for a namespace of --watch-namespace that the operator does not serve: it is missing, lacks the chart's Roles, or came back after the operator's start.",
		}, []string{"namespace"}),
	}
	n.unread.Store(&[]string{})
	return n, nil
}

// divideWatched returns the namespaces that the cache may hold, and those that are left out. If none can be read, the cache waits for all.
func (n *namespaces) divideWatched(ctx context.Context) (cached, left []string) {
	n.probeAll(ctx)
	left = n.listUnread()
	if len(left) == len(n.watched) {
		left = nil
	}
	n.cached = slices.DeleteFunc(slices.Clone(n.watched), func(name string) bool { return slices.Contains(left, name) })
	return n.cached, left
}

// probeAll finds the namespaces that cannot be read.
func (n *namespaces) probeAll(ctx context.Context) {
	former, refused := n.listUnread(), make([]bool, len(n.watched))
	var group sync.WaitGroup
	for i, name := range n.watched {
		group.Go(func() { refused[i] = n.isRefused(ctx, name, slices.Contains(former, name)) })
	}
	group.Wait()
	unread := []string{}
	for i, name := range n.watched {
		value := 0.0
		if refused[i] {
			unread, value = append(unread, name), 1
		} else if n.cached != nil && !slices.Contains(n.cached, name) {
			value = 1 // the next process serves it
		}
		n.gauge.WithLabelValues(name).Set(value)
	}
	n.unread.Store(&unread)
}

// isRefused reports whether the API server refuses to list a namespace. Other failures change nothing of what it said before.
func (n *namespaces) isRefused(ctx context.Context, name string, before bool) bool {
	kinds := project.CachedObjects()
	if slices.Contains(n.cached, name) && !before {
		kinds = kinds[:1]
	}
	err := n.listKinds(ctx, name, kinds)
	switch {
	case err == nil && before && !slices.Contains(n.cached, name):
		n.log.Info("namespace "+returnedNote, "namespace", name)
	case err == nil && before:
		n.log.Info("namespace can be read again", "namespace", name)
	case apierrors.IsForbidden(err) && !before:
		n.log.Error(err, "namespace cannot be read: "+unreadCause, "namespace", name)
	}
	return apierrors.IsForbidden(err) || err != nil && before
}

// listKinds lists one object of each kind.
func (n *namespaces) listKinds(ctx context.Context, namespace string, kinds []client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	for _, object := range kinds {
		kind, err := n.client.GroupVersionKindFor(object)
		if err != nil {
			return fmt.Errorf("find kind: %w", err)
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if err := n.client.List(ctx, list, client.InNamespace(namespace), client.Limit(1)); err != nil {
			return fmt.Errorf("list %s: %w", kind.Kind, err)
		}
	}
	return nil
}

func (n *namespaces) listUnread() []string { return *n.unread.Load() }

// describeUnread returns a line for each namespace that is not served.
func (n *namespaces) describeUnread() string {
	var lines strings.Builder
	for _, name := range n.listUnread() {
		lines.WriteString("\nnamespace " + name + " is not read: " + unreadCause)
	}
	for _, name := range n.listReturned() {
		lines.WriteString("\nnamespace " + name + " " + returnedNote)
	}
	return lines.String()
}

// listReturned returns the namespaces that were left out and can be read.
func (n *namespaces) listReturned() []string {
	return slices.DeleteFunc(slices.Clone(n.watched), func(name string) bool {
		return slices.Contains(n.cached, name) || slices.Contains(n.listUnread(), name)
	})
}

// followUnread probes until ctx ends, and calls end once when a new process would read more than this one. areBlocked reports whether a
// namespace that was lost may keep the others from being served; old: the process has run for minUptime.
func (n *namespaces) followUnread(ctx context.Context, areBlocked func(ctx context.Context, old bool) bool, end func()) {
	began := time.Now()
	ticker := time.NewTicker(n.period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		n.probeAll(ctx)
		old := time.Since(began) >= n.minUptime
		if n.shouldEnd(areBlocked(ctx, old), old) {
			n.log.Info("process ends, to read other namespaces when it starts again", "unread", n.listUnread(), "read", n.cached)
			end()
			return
		}
	}
}

// shouldEnd reports whether the process should end: a namespace that was left out can be read, or one that was lost blocks the others,
// so that the end costs nothing.
func (n *namespaces) shouldEnd(blocked, old bool) bool {
	unread := n.listUnread()
	isUnread := func(name string) bool { return slices.Contains(unread, name) }
	lost := slices.ContainsFunc(n.cached, isUnread) && len(unread) < len(n.watched)
	return lost && blocked || len(n.listReturned()) > 0 && old
}
