package apply

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// Observed are the children that a project has, from the cache. They must not be changed.
type Observed struct {
	objects map[Ref]client.Object
}

// Deployment returns the project's Deployment, or nil if there is none.
func (o *Observed) Deployment() *appsv1.Deployment {
	for _, object := range o.objects {
		if deployment, ok := object.(*appsv1.Deployment); ok {
			return deployment
		}
	}
	return nil
}

// Exposures returns the objects that expose the project's pods: its Service, Ingress and HTTPRoute.
func (o *Observed) Exposures() []client.Object {
	var exposures []client.Object
	for ref, object := range o.objects {
		if ref.Kind == kindService || ref.Kind == kindIngress || ref.Kind == kindHTTPRoute {
			exposures = append(exposures, object)
		}
	}
	return exposures
}

// Observe reads a project's children from the cache: those with its label whose controller it is.
func (a *Applier) Observe(ctx context.Context, p *verifyv1.VerificationProject) (*Observed, error) {
	observed := &Observed{objects: map[Ref]client.Object{}}
	for _, kind := range listKinds(a.HTTPRoutes()) {
		list := newList(kind)
		err := a.Client.List(ctx, list, client.InNamespace(p.Namespace),
			client.MatchingLabels{verifyv1.ProjectLabel: verifyv1.ProjectLabelValue(p.Name)})
		if err != nil {
			return nil, fmt.Errorf("list %s of the project: %w", kind.Kind, err)
		}
		err = meta.EachListItem(list, func(item runtime.Object) error {
			if object, ok := item.(client.Object); ok && isOwned(object, p) {
				object.GetObjectKind().SetGroupVersionKind(kind) // lists leave it out
				observed.objects[Ref{kind.Kind, object.GetName()}] = object
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read %s of the project: %w", kind.Kind, err)
		}
	}
	return observed, nil
}

// isOwned reports whether the project is the controller of an object. A former project of the same name is not.
func isOwned(object metav1.Object, p *verifyv1.VerificationProject) bool {
	return metav1.IsControlledBy(object, p)
}
