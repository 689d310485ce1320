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

// Observed are the children that a project has, as the cache shows them. They must not be changed.
type Observed struct {
	objects map[Ref]client.Object
}

// Deployment returns the project's Deployment, or nil where there is none.
func (o *Observed) Deployment() *appsv1.Deployment {
	for _, object := range o.objects {
		if deployment, ok := object.(*appsv1.Deployment); ok {
			return deployment
		}
	}
	return nil
}

// Exposures returns what leads to the project's pods: its Service, Ingress and HTTPRoute.
func (o *Observed) Exposures() []client.Object {
	var exposures []client.Object
	for ref, object := range o.objects {
		if ref.Kind == kindService || ref.Kind == kindIngress || ref.Kind == kindHTTPRoute {
			exposures = append(exposures, object)
		}
	}
	return exposures
}

// Observe reads the children that the project has from the cache: those with its label whose controller it is.
func (a *Applier) Observe(ctx context.Context, p *verifyv1.VerificationProject) (*Observed, error) {
	observed := &Observed{objects: map[Ref]client.Object{}}
	for _, k := range a.kinds() {
		list := k.newList()
		err := a.Client.List(ctx, list, client.InNamespace(p.Namespace),
			client.MatchingLabels{verifyv1.ProjectLabel: verifyv1.ProjectLabelValue(p.Name)})
		if err != nil {
			return nil, fmt.Errorf("list the project's %s: %w", k.gvk.Kind, err)
		}
		err = meta.EachListItem(list, func(item runtime.Object) error {
			if object, ok := item.(client.Object); ok && owned(object, p) {
				observed.objects[Ref{k.gvk.Kind, object.GetName()}] = object
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read the project's %s: %w", k.gvk.Kind, err)
		}
	}
	return observed, nil
}

// owned tells whether the project is the controller of an object. A project of the same name from another time is not.
func owned(object metav1.Object, p *verifyv1.VerificationProject) bool {
	return metav1.IsControlledBy(object, p)
}
