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

// child is a wanted child.
type child struct {
	Ref

	wanted *unstructured.Unstructured
}

// listChildren returns the wanted children in the order in which they are applied.
func (a *Applier) listChildren(wanted render.Children) ([]child, error) {
	kinds := listKinds(a.HTTPRoutes())
	var children []child
	for _, configuration := range wanted.List() {
		content, err := toContent(configuration)
		if err != nil {
			return nil, fmt.Errorf("convert child: %w", err)
		}
		if !slices.Contains(kinds, content.GroupVersionKind()) {
			return nil, fmt.Errorf("unknown kind %s in the cluster", content.GetKind())
		}
		children = append(children, child{Ref{content.GetKind(), content.GetName()}, content})
	}
	return children, nil
}

// toContent returns an apply configuration as the object that is sent, in the form of what extractOwned returns.
func toContent(configuration runtime.ApplyConfiguration) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(configuration)
	if err != nil {
		return nil, fmt.Errorf("convert %T: %w", configuration, err)
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// needs maps a child to the one that it depends on: a foreign ServiceAccount must get neither our rights nor our pods, a foreign
// Service must not be exposed, and a foreign Deployment must not be scaled.
var needs = map[string]string{
	kindBinding:    kindAccount,
	kindDeployment: kindAccount,
	kindAutoscaler: kindDeployment,
	kindIngress:    kindService,
	kindHTTPRoute:  kindService,
}

// applyChild makes one child what is wanted.
func (r *run) applyChild(ctx context.Context, c child) {
	if r.mustWait(c.Ref) {
		r.result.Waiting = append(r.result.Waiting, c.Ref)
		if c.Kind == kindAutoscaler || c.Kind == kindIngress || c.Kind == kindHTTPRoute {
			delete(r.wanted, c.Ref) // an existing one is deleted: it would act on a foreign object, or expose it
		}
		return
	}
	err := r.writeIfNeeded(ctx, c)
	if rejection, ok := asRejection(c.Ref, err); ok {
		r.result.Rejections = append(r.result.Rejections, rejection)
	} else if err != nil && !isEnding(err) {
		r.errs = append(r.errs, fmt.Errorf("apply %s: %w", c.Ref, err))
	}
}

// mustWait reports whether a child must not be applied now, because what it needs is not ours.
func (r *run) mustWait(ref Ref) bool {
	need, ok := needs[ref.Kind]
	return ok && slices.ContainsFunc(slices.Concat(r.result.Conflicts, r.result.Waiting), func(other Ref) bool { return other.Kind == need })
}

// writeIfNeeded writes a child if it differs from what is wanted.
func (r *run) writeIfNeeded(ctx context.Context, c child) error {
	found, err := r.findChild(ctx, c)
	if err != nil {
		return fmt.Errorf("find child: %w", err)
	}
	if found == nil {
		err := r.createChild(ctx, c)
		if !apierrors.IsConflict(err) {
			return err
		}
		// There is one that the cache did not show: not yet, or never, because it lacks our label.
		if found, err = getChild(ctx, r.Live, c); err != nil {
			return fmt.Errorf("find uncached child: %w", err)
		}
	}
	if !isOwned(found, r.Project) {
		r.result.Conflicts = append(r.result.Conflicts, c.Ref)
		return nil
	}
	return r.updateChild(ctx, c, found)
}

// findChild returns the child from the cache, with any owner; nil if there is none.
func (r *run) findChild(ctx context.Context, c child) (client.Object, error) {
	if found, ok := r.Observed.objects[c.Ref]; ok {
		return found, nil
	}
	found, err := getChild(ctx, r.Client, c)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}

func getChild(ctx context.Context, from client.Reader, c child) (client.Object, error) {
	object := newObject(c.wanted.GroupVersionKind())
	if err := from.Get(ctx, client.ObjectKeyFromObject(c.wanted), object); err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	object.GetObjectKind().SetGroupVersionKind(c.wanted.GroupVersionKind())
	return object, nil
}

// createChild applies a child only if it does not exist: an existing object has another resourceVersion than 1, so the server
// answers with a conflict.
func (r *run) createChild(ctx context.Context, c child) error {
	if _, err := r.writeChild(ctx, c, "resourceVersion", "1"); err != nil {
		return fmt.Errorf("create child: %w", err)
	}
	r.result.Applied = append(r.result.Applied, c.Ref)
	return nil
}

// updateChild applies a child if the fields that we own differ from what is wanted: a field is missing, differs, has another
// owner by now, or is no longer wanted. The UID prevents a write to another object that has taken the name.
func (r *run) updateChild(ctx context.Context, c child, found client.Object) error {
	condition, value := "uid", string(found.GetUID())
	if deployment, ok := found.(*appsv1.Deployment); ok {
		if r.HoldDeployment {
			return nil
		}
		guarded, err := handOver(c.wanted.Object, r.Wanted.HorizontalPodAutoscaler != nil, deployment)
		if err != nil {
			return fmt.Errorf("hand over replicas: %w", err)
		}
		if guarded {
			condition, value = "resourceVersion", found.GetResourceVersion()
		}
	}
	// A state that cannot be extracted, such as a list with a repeated key, counts as different.
	have, err := extractOwned(found)
	if err == nil && reflect.DeepEqual(have, c.wanted) {
		r.settled[c.Ref] = true
		return nil
	}
	version, err := r.writeChild(ctx, c, condition, value)
	switch {
	case err != nil:
		return fmt.Errorf("update child: %w", err)
	case version == found.GetResourceVersion():
		// The server's admission restores the former state, as a policy does that rewrites images: it cannot be closer to wanted.
		r.settled[c.Ref] = true
	default:
		r.result.Applied = append(r.result.Applied, c.Ref)
	}
	return nil
}

// writeChild applies a child on a condition, and returns the new version of the object.
func (r *run) writeChild(ctx context.Context, c child, condition, value string) (string, error) {
	u := c.wanted.DeepCopy()
	if err := unstructured.SetNestedField(u.Object, value, "metadata", condition); err != nil {
		return "", fmt.Errorf("set metadata.%s: %w", condition, err)
	}
	if err := r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), FieldOwner, client.ForceOwnership); err != nil {
		return "", fmt.Errorf("write: %w", err)
	}
	return u.GetResourceVersion(), nil
}
