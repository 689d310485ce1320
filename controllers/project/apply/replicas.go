package apply

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// handOver corrects the number of pods in a wanted Deployment that exists, for an autoscaler is to set it or has set it. It
// tells whether the number depends on what was observed, so that an autoscaler's next write makes it wrong.
func handOver(wanted map[string]any, autoscaled bool, found *appsv1.Deployment) (guarded bool, err error) {
	if !autoscaled || ptr.Deref(found.Spec.Replicas, 0) == 0 {
		return false, nil // an autoscaler leaves 0 alone: the pods begin with what is rendered
	}
	if scaled(found) {
		unstructured.RemoveNestedField(wanted, "spec", "replicas")
		return false, nil
	}
	// Who stops sending a field that nobody else owns takes it away: the number would fall to the default, 1.
	return true, unstructured.SetNestedField(wanted, int64(*found.Spec.Replicas), "spec", "replicas")
}

// scaled tells whether an autoscaler owns the number of pods: whoever wrote it last did so by the subresource scale.
func scaled(d *appsv1.Deployment) bool {
	for _, entry := range d.ManagedFields {
		if entry.Subresource == "scale" && owns(entry, fieldpath.MakePathOrDie("spec", "replicas")) {
			return true
		}
	}
	return false
}

func owns(entry metav1.ManagedFieldsEntry, path fieldpath.Path) bool {
	if entry.FieldsV1 == nil {
		return false
	}
	var set fieldpath.Set
	if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
		return false
	}
	return set.Has(path)
}
