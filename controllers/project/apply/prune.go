package apply

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pruneChildren deletes the objects of ours that are not wanted.
func (r *run) pruneChildren(ctx context.Context, among func(Ref) bool) {
	for _, ref := range slices.SortedFunc(maps.Keys(r.Observed.objects), compareRefs) {
		object := r.Observed.objects[ref]
		switch {
		case r.wanted[ref] || !among(ref) || object.GetDeletionTimestamp() != nil:
		case ref.Kind == kindBinding && r.isRolling():
			r.result.Waiting = append(r.result.Waiting, ref)
		default:
			r.deleteChild(ctx, ref, object)
		}
	}
}

func compareRefs(a, b Ref) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

// isRolling reports whether there may be pods of another template than the wanted one: they need the rights that they were
// started with.
func (r *run) isRolling() bool {
	d := r.Observed.Deployment()
	return d != nil && (!r.settled[Ref{kindDeployment, d.Name}] ||
		d.Status.ObservedGeneration < d.Generation ||
		d.Status.UpdatedReplicas < d.Status.Replicas ||
		ptr.Deref(d.Status.TerminatingReplicas, 0) > 0)
}

// deleteChild deletes exactly the object that was observed.
func (r *run) deleteChild(ctx context.Context, ref Ref, object client.Object) {
	err := r.Client.Delete(ctx, object, client.Preconditions{
		UID: new(object.GetUID()), ResourceVersion: new(object.GetResourceVersion()),
	})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		r.errs = append(r.errs, fmt.Errorf("delete %s: %w", ref, err))
	default:
		r.result.Deleted = append(r.result.Deleted, ref)
	}
}
