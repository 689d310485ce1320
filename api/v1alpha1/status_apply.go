package v1alpha1

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// ApplyStatus returns a VerificationProject for server-side apply that holds the fields of the status which are not empty, and no
// spec: the types alone would send the zero values of a spec, too.
func ApplyStatus(namespace, name string, status *VerificationProjectStatus) *unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		panic(err) // the type of the status cannot be converted, whatever it holds
	}
	project := &unstructured.Unstructured{Object: map[string]any{"status": content}}
	project.SetGroupVersionKind(GroupVersion.WithKind(VerificationProjectKind))
	project.SetNamespace(namespace)
	project.SetName(name)
	return project
}
