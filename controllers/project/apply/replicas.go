package apply

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
)

// handOver corrects the number of pods in the wanted state of an existing Deployment, because an autoscaler sets it or will set
// it. It reports whether the number depends on the observed one, so that a write of the autoscaler would make it stale.
func handOver(wanted map[string]any, autoscaled bool, found *appsv1.Deployment) (guarded bool, err error) {
	if !autoscaled || ptr.Deref(found.Spec.Replicas, 0) == 0 {
		return false, nil // an autoscaler ignores 0: the pods start with the rendered number
	}
	if isScaled(found) {
		unstructured.RemoveNestedField(wanted, "spec", "replicas")
		return false, nil
	}
	// If the only owner stops sending a field, the field is removed: the number would fall to the default, 1.
	if err := unstructured.SetNestedField(wanted, int64(*found.Spec.Replicas), "spec", "replicas"); err != nil {
		return true, fmt.Errorf("keep replicas: %w", err)
	}
	return true, nil
}
