package apply

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/phoneproof/phoneproof/controllers/project/render"
)

// Rolls reports whether applying the wanted Deployment would replace the pods of the existing one.
func Rolls(observed *Observed, wanted render.Children) (bool, error) {
	found := observed.Deployment()
	if found == nil || wanted.Deployment == nil {
		return false, nil
	}
	want, err := podTemplate(wanted.Deployment)
	if err != nil {
		return false, fmt.Errorf("read wanted pods: %w", err)
	}
	owned, err := appsv1ac.ExtractDeployment(found, string(FieldOwner))
	if err != nil {
		return true, nil //nolint:nilerr // a state that cannot be extracted is applied
	}
	have, err := podTemplate(owned)
	if err != nil {
		return false, fmt.Errorf("read running pods: %w", err)
	}
	return !reflect.DeepEqual(have, want), nil
}

func podTemplate(d *appsv1ac.DeploymentApplyConfiguration) (any, error) {
	object, err := toContent(d)
	if err != nil {
		return nil, fmt.Errorf("convert Deployment: %w", err)
	}
	found, _, err := unstructured.NestedFieldNoCopy(object, "spec", "template")
	if err != nil {
		return nil, fmt.Errorf("read template: %w", err)
	}
	return found, nil
}
