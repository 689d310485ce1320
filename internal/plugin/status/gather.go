package status

import (
	"context"
	"fmt"
	"net/url"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/render"
	"github.com/phoneproof/phoneproof/internal/leader"
	"github.com/phoneproof/phoneproof/internal/plugin"
)

// countTimeout bounds the way to a pod: the rest of the status must not wait for a pod that hangs.
const countTimeout = 10 * time.Second

// gatherRest adds what other objects and a pod say. What cannot be found out is named in Unknown.
func gatherRest(ctx context.Context, env *plugin.Env, c *plugin.Client, r *Report) {
	if err := readReplicas(ctx, c, r); err != nil {
		r.Unknown = append(r.Unknown, explainUnknown("replicas", err))
	}
	if err := readLease(ctx, c, r); err != nil {
		r.Unknown = append(r.Unknown, explainUnknown("holder of the lease", err))
	}
	if r.Suspended {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	metrics, err := plugin.ReadMetrics(ctx, env, c)
	if err == nil {
		r.StoredRequests, err = plugin.CountStored(metrics)
	}
	if err != nil {
		r.Unknown = append(r.Unknown, explainUnknown("stored requests", err))
	}
}

func explainUnknown(what string, err error) string { return what + ": " + plugin.Clean(err.Error()) }

func readReplicas(ctx context.Context, c *plugin.Client, r *Report) error {
	var deployment appsv1.Deployment
	key := client.ObjectKey{Namespace: c.Project.Namespace, Name: render.Name(c.Project.Name)}
	if err := c.Get(ctx, key, &deployment); err != nil {
		return fmt.Errorf("read Deployment: %w", err)
	}
	r.Replicas = &Replicas{
		Wanted: ptr.Deref(deployment.Spec.Replicas, 1), Ready: deployment.Status.ReadyReplicas, Updated: deployment.Status.UpdatedReplicas,
	}
	return nil
}

func readLease(ctx context.Context, c *plugin.Client, r *Report) error {
	var lease coordinationv1.Lease
	key := client.ObjectKey{Namespace: c.Project.Namespace, Name: leader.ProjectLease(c.Project.Name)}
	if err := c.Get(ctx, key, &lease); apierrors.IsNotFound(err) {
		return nil // no pod has run yet
	} else if err != nil {
		return fmt.Errorf("read lease: %w", err)
	}
	r.LeaseHolder = ptr.Deref(lease.Spec.HolderIdentity, "")
	if lease.Spec.RenewTime != nil {
		r.LeaseRenewedAt = lease.Spec.RenewTime.UTC()
	}
	return nil
}

// serviceAddress is where the API is reached inside the cluster.
func serviceAddress(p *verifyv1.VerificationProject) string {
	return "http://" + render.Name(p.Name) + "." + p.Namespace + ".svc"
}

// hostOf returns the host of a URL: what follows it may hold a token of the receiver.
func hostOf(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return "[unreadable]"
	}
	return parsed.Host
}
