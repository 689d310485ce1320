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

// prune deletes those of our objects that are not wanted.
func (r *run) prune(ctx context.Context, among func(Ref) bool) {
	for _, ref := range slices.SortedFunc(maps.Keys(r.Observed.objects), compare) {
		object := r.Observed.objects[ref]
		switch {
		case r.wanted[ref] || !among(ref) || object.GetDeletionTimestamp() != nil:
		case ref.Kind == kindBinding && r.rolling():
			r.result.Waiting = append(r.result.Waiting, ref)
		default:
			r.delete(ctx, ref, object)
		}
	}
}

func compare(a, b Ref) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) }

// rolling tells whether there may be pods of another template than the wanted one: they work with the rights that they were
// started with.
func (r *run) rolling() bool {
	d := r.Observed.Deployment()
	return d != nil && (!r.settled[Ref{kindDeployment, d.Name}] ||
		d.Status.ObservedGeneration < d.Generation ||
		d.Status.UpdatedReplicas < d.Status.Replicas ||
		ptr.Deref(d.Status.TerminatingReplicas, 0) > 0)
}

// delete deletes exactly the object that was observed.
func (r *run) delete(ctx context.Context, ref Ref, object client.Object) {
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
