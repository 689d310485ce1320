package apply

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/phoneproof/phoneproof/controllers/project/render"
)

// child is one that is wanted.
type child struct {
	Ref

	kind   kind
	wanted map[string]any
}

// children returns the wanted ones, in the order in which they are to be applied.
func (a *Applier) children(wanted render.Children) ([]child, error) {
	kinds := map[string]kind{}
	for _, k := range a.kinds() {
		kinds[k.gvk.Kind] = k
	}
	var children []child
	for _, configuration := range wanted.List() {
		object, err := content(configuration)
		if err != nil {
			return nil, err
		}
		u := unstructured.Unstructured{Object: object}
		k, ok := kinds[u.GetKind()]
		if !ok {
			return nil, fmt.Errorf("the cluster has no %s", u.GetKind())
		}
		children = append(children, child{Ref: Ref{u.GetKind(), u.GetName()}, kind: k, wanted: object})
	}
	return children, nil
}

// needs says which other child a child is about: a foreign ServiceAccount must get neither our rights nor our pods, a foreign
// Service must not be exposed, and a foreign Deployment must not be scaled.
var needs = map[string]string{
	kindBinding:    kindAccount,
	kindDeployment: kindAccount,
	kindAutoscaler: kindDeployment,
	kindIngress:    kindService,
	kindHTTPRoute:  kindService,
}

// apply makes one child what is wanted.
func (r *run) apply(ctx context.Context, c child) {
	if r.waits(c.Ref) {
		r.result.Waiting = append(r.result.Waiting, c.Ref)
		if c.Kind == kindAutoscaler || c.Kind == kindIngress || c.Kind == kindHTTPRoute {
			delete(r.wanted, c.Ref) // one that is there already goes: it would act on what is not ours, or lead to it
		}
		return
	}
	err := r.try(ctx, c)
	if rejection, ok := rejected(c.Ref, err); ok {
		r.result.Rejections = append(r.result.Rejections, rejection)
	} else if err != nil && !ending(err) {
		r.errs = append(r.errs, fmt.Errorf("apply %s: %w", c.Ref, err))
	}
}

// waits tells whether a child must not be applied now, because what it needs is not ours.
func (r *run) waits(ref Ref) bool {
	need, ok := needs[ref.Kind]
	return ok && slices.ContainsFunc(slices.Concat(r.result.Conflicts, r.result.Waiting), func(other Ref) bool { return other.Kind == need })
}

// try writes a child if it is not as it should be.
func (r *run) try(ctx context.Context, c child) error {
	found, err := r.find(ctx, c)
	if err != nil {
		return err
	}
	if found == nil {
		err := r.create(ctx, c)
		if !apierrors.IsConflict(err) {
			return err
		}
		// There is one that the cache did not show: not yet, or never, because it does not have our label.
		if found, err = get(ctx, r.Live, c); err != nil {
			return err
		}
	}
	if !owned(found, r.Project) {
		r.result.Conflicts = append(r.result.Conflicts, c.Ref)
		return nil
	}
	return r.update(ctx, c, found)
}

// find returns the child as the cache shows it, whoever owns it, or nil where it shows none.
func (r *run) find(ctx context.Context, c child) (client.Object, error) {
	if found, ok := r.Observed.objects[c.Ref]; ok {
		return found, nil
	}
	found, err := get(ctx, r.Client, c)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}

func get(ctx context.Context, from client.Reader, c child) (client.Object, error) {
	object := c.kind.newObject()
	namespace, _, _ := unstructured.NestedString(c.wanted, "metadata", "namespace") // rendered, so it is a string
	if err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: c.Name}, object); err != nil {
		return nil, err
	}
	return object, nil
}

// create applies a child that does not exist, and only then: to one that exists the server answers with a conflict, because
// no object has the first version that etcd counts.
func (r *run) create(ctx context.Context, c child) error {
	if _, err := r.write(ctx, c, "resourceVersion", "1"); err != nil {
		return err
	}
	r.result.Applied = append(r.result.Applied, c.Ref)
	return nil
}

// update applies a child if what we own of the object is not what is wanted: a field is missing or other than it should be,
// is somebody else's by now, or is ours and no longer wanted. The UID keeps the server from applying to another object that
// has got the name meanwhile.
func (r *run) update(ctx context.Context, c child, found client.Object) error {
	condition, value := "uid", string(found.GetUID())
	if deployment, ok := found.(*appsv1.Deployment); ok {
		if r.HoldDeployment {
			return nil
		}
		guarded, err := handOver(c.wanted, r.Wanted.HorizontalPodAutoscaler != nil, deployment)
		if err != nil {
			return err
		}
		if guarded {
			condition, value = "resourceVersion", found.GetResourceVersion()
		}
	}
	// What cannot be extracted, such as a list in which somebody repeats a key, is not as it should be.
	have, err := c.kind.extract(found)
	if err == nil && reflect.DeepEqual(have, c.wanted) {
		r.settled[c.Ref] = true
		return nil
	}
	version, err := r.write(ctx, c, condition, value)
	switch {
	case err != nil:
		return err
	case version == found.GetResourceVersion():
		// The server's admission makes it what it was, as a policy does that rewrites images: it cannot be nearer to wanted.
		r.settled[c.Ref] = true
	default:
		r.result.Applied = append(r.result.Applied, c.Ref)
	}
	return nil
}

// write applies a child on a condition, and returns the version that the object has then.
func (r *run) write(ctx context.Context, c child, condition, value string) (string, error) {
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(c.wanted)}
	if err := unstructured.SetNestedField(u.Object, value, "metadata", condition); err != nil {
		return "", err
	}
	err := r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), FieldOwner, client.ForceOwnership)
	return u.GetResourceVersion(), err
}
