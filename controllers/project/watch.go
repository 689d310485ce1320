package project

import (
	"context"
	"fmt"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// settling is how long changes of children and conditions may wait. They come in bursts, our own writes among them, and the cache
// has seen those by then.
const settling = 200 * time.Millisecond

// sharingDelay is how long changes for other namespaces may wait. They affect a condition only, and a tenant that changes an
// account repeatedly must not cause as many writes to the projects of others.
const sharingDelay = 5 * time.Second

func requestFor(o client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)}
}

// ofProjects reconciles at once a project that is new or has another spec, and the others that name one of its accounts, because
// their conditions, and whether they may start, depend on it.
func (c *Controller) ofProjects() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue queue) {
			queue.Add(requestFor(e.Object))
			c.addSharing(ctx, queue, e.Object)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue queue) {
			if e.ObjectOld.GetGeneration() == e.ObjectNew.GetGeneration() { // the start of a deletion counts as a change
				queue.AddAfter(requestFor(e.ObjectNew), settling)
				return
			}
			queue.Add(requestFor(e.ObjectNew))
			c.addSharing(ctx, queue, e.ObjectOld)
			c.addSharing(ctx, queue, e.ObjectNew)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue queue) {
			c.pace.forget(e.Object.GetUID())
			c.claims.forgetClaims(e.Object.GetUID())
			c.hosts.releaseHosts(e.Object.GetUID())
			c.addSharing(ctx, queue, e.Object)
		},
	}
}

// addSharing adds the other projects that have an account of this one.
func (c *Controller) addSharing(ctx context.Context, queue queue, object client.Object) {
	project, ok := object.(*verifyv1.VerificationProject)
	if !ok {
		return
	}
	for _, account := range listAccounts(&project.Spec) {
		var sharing verifyv1.VerificationProjectList
		if err := c.client.List(ctx, &sharing, client.MatchingFields{accountIndex: account}, client.UnsafeDisableDeepCopy); err != nil {
			c.Log.Error(err, "list projects by account failed")
			return
		}
		for i := range sharing.Items {
			switch other := &sharing.Items[i]; {
			case other.UID == project.UID:
			case other.Namespace == project.Namespace:
				queue.Add(requestFor(other))
			default:
				queue.AddAfter(requestFor(other), sharingDelay)
			}
		}
	}
}

// ofChildren reconciles the project that is the controller of a child.
func ofChildren() handler.EventHandler {
	add := func(queue queue, object client.Object) {
		if owner := projectOf(object); owner != nil {
			queue.AddAfter(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: object.GetNamespace(), Name: owner.Name}}, settling)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, queue queue) { add(queue, e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue queue) {
			add(queue, e.ObjectNew)
			add(queue, e.ObjectOld) // the owner reference may have been removed
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue queue) { add(queue, e.Object) },
	}
}

// projectOf returns the project that controls a child; nil if none does.
func projectOf(object client.Object) *metav1.OwnerReference {
	owner := metav1.GetControllerOf(object)
	if owner == nil || owner.Kind != verifyv1.VerificationProjectKind ||
		!strings.HasPrefix(owner.APIVersion, verifyv1.GroupVersion.Group+"/") {
		return nil
	}
	return owner
}

// ofDeployments reconciles projects that share an account with a project that is being deleted when its Deployment is deleted.
func (c *Controller) ofDeployments() handler.EventHandler {
	return handler.Funcs{
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue queue) { c.addSharingOwner(ctx, queue, e.Object) },
	}
}

// addSharingOwner adds the projects that have an account of a Deployment's project, if that is being deleted.
func (c *Controller) addSharingOwner(ctx context.Context, queue queue, deployment client.Object) {
	owner := projectOf(deployment)
	if owner == nil {
		return
	}
	var project verifyv1.VerificationProject
	err := c.client.Get(ctx, client.ObjectKey{Namespace: deployment.GetNamespace(), Name: owner.Name}, &project)
	if err != nil || project.DeletionTimestamp.IsZero() {
		return // without the project, its own deletion has requeued them
	}
	c.addSharing(ctx, queue, &project)
}

// withoutStatus ignores changes of a status alone: that of an autoscaler changes several times a minute.
func withoutStatus() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld, e.ObjectNew
		return isSpecChanged(before, after) ||
			before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
			!equality.Semantic.DeepEqual(before.GetLabels(), after.GetLabels()) ||
			!equality.Semantic.DeepEqual(before.GetAnnotations(), after.GetAnnotations()) ||
			!equality.Semantic.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences())
	}}
}

// isSpecChanged reports whether the spec of an object may have changed. Some kinds have no generation; of these only the
// autoscaler has a status that changes often.
func isSpecChanged(before, after client.Object) bool {
	if after.GetGeneration() != 0 {
		return before.GetGeneration() != after.GetGeneration()
	}
	old, ok := before.(*autoscalingv2.HorizontalPodAutoscaler)
	now, also := after.(*autoscalingv2.HorizontalPodAutoscaler)
	return !ok || !also || !equality.Semantic.DeepEqual(old.Spec, now.Spec)
}

// indexByAccount returns the accounts of a project, for the index.
func indexByAccount(object client.Object) []string {
	project, ok := object.(*verifyv1.VerificationProject)
	if !ok {
		return nil
	}
	return listAccounts(&project.Spec)
}

func indexFields(ctx context.Context, indexer client.FieldIndexer) error {
	for _, index := range []struct {
		object client.Object
		field  string
		values client.IndexerFunc
	}{
		{&verifyv1.VerificationProject{}, accountIndex, indexByAccount},
		{&networkingv1.Ingress{}, hostIndex, indexByHost},
		{&corev1.Service{}, hostIndex, indexByHost},
	} {
		if err := indexer.IndexField(ctx, index.object, index.field, index.values); err != nil {
			return fmt.Errorf("index %T by %s: %w", index.object, index.field, err)
		}
	}
	return nil
}
