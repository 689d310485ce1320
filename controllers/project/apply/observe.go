package apply

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Observed are the children that an owner has, from the cache. They must not be changed.
type Observed struct {
	objects map[Ref]client.Object
}

// Deployment returns the owner's Deployment, or nil if there is none.
func (o *Observed) Deployment() *appsv1.Deployment {
	for _, object := range o.objects {
		if deployment, ok := object.(*appsv1.Deployment); ok {
			return deployment
		}
	}
	return nil
}

// Exposures returns the objects that expose a project's pods: its Service, Ingress and HTTPRoute.
func (o *Observed) Exposures() []client.Object {
	var exposures []client.Object
	for ref, object := range o.objects {
		if ref.Kind == kindService || ref.Kind == kindIngress || ref.Kind == kindHTTPRoute {
			exposures = append(exposures, object)
		}
	}
	return exposures
}

// Observe reads the children of an owner from the cache.
func (a *Applier) Observe(ctx context.Context, owner Owner) (*Observed, error) {
	observed := &Observed{objects: map[Ref]client.Object{}}
	for _, k := range a.listKinds() {
		list := k.newList()
		if err := a.Client.List(ctx, list, client.InNamespace(owner.namespace), owner.labels); err != nil {
			return nil, fmt.Errorf("list %s of the owner: %w", k.gvk.Kind, err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			if object, ok := item.(client.Object); ok && owner.owns(object) {
				observed.objects[Ref{k.gvk.Kind, object.GetName()}] = object
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read %s of the owner: %w", k.gvk.Kind, err)
		}
	}
	return observed, nil
}
