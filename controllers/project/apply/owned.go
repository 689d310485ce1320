package apply

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/phoneproof/phoneproof/controllers/project/render"
)

// builtin knows the schemas of Kubernetes' own kinds. It is built when it is first needed, because its schemas are large.
var builtin = sync.OnceValue(func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(scheme.Scheme) })

// extractOwned returns the fields of a child that FieldOwner owns, with their values.
func extractOwned(child client.Object) (*unstructured.Unstructured, error) {
	converter := managedfields.NewDeducedTypeConverter()
	if _, ok := child.(*unstructured.Unstructured); !ok {
		converter = builtin()
	}
	typed, err := converter.ObjectToTyped(child)
	if err != nil {
		return nil, fmt.Errorf("convert %T: %w", child, err)
	}
	var owned fieldpath.Set
	for _, entry := range child.GetManagedFields() {
		if entry.Manager == string(FieldOwner) && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			owned = *readFields(entry)
		}
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if content, ok := typed.ExtractItems(owned.Leaves()).AsValue().Unstructured().(map[string]any); ok {
		u.Object = content
	}
	u.SetGroupVersionKind(child.GetObjectKind().GroupVersionKind())
	u.SetName(child.GetName())
	u.SetNamespace(child.GetNamespace())
	// The deduced schema extracts lists whole, with the references of others; only ours is a controller's.
	isForeign := func(owner metav1.OwnerReference) bool { return !ptr.Deref(owner.Controller, false) }
	u.SetOwnerReferences(slices.DeleteFunc(u.GetOwnerReferences(), isForeign))
	return u, nil
}

// readFields returns the fields of an entry; none if it is unreadable.
func readFields(entry metav1.ManagedFieldsEntry) *fieldpath.Set {
	set := &fieldpath.Set{}
	if entry.FieldsV1 == nil || set.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
		return &fieldpath.Set{}
	}
	return set
}

// Rolls reports whether applying the wanted Deployment would replace the pods of the existing one.
func Rolls(observed *Observed, wanted render.Children) (bool, error) {
	found := observed.Deployment()
	if found == nil || wanted.Deployment == nil {
		return false, nil
	}
	owned, err := extractOwned(found)
	if err != nil {
		return true, nil //nolint:nilerr // a state that cannot be extracted is applied
	}
	want, err := toContent(wanted.Deployment)
	if err != nil {
		return false, fmt.Errorf("read wanted pods: %w", err)
	}
	return !reflect.DeepEqual(readTemplate(owned), readTemplate(want)), nil
}

func readTemplate(deployment *unstructured.Unstructured) any {
	template, _, _ := unstructured.NestedFieldNoCopy(deployment.Object, "spec", "template") // an object, as rendered and as extracted
	return template
}

// ArePodsEdited reports whether another field owner set a field in the pods of a Deployment.
func ArePodsEdited(deployment *appsv1.Deployment) bool {
	for _, entry := range deployment.ManagedFields {
		if entry.Manager == string(FieldOwner) || entry.Subresource != "" {
			continue
		}
		pods := readFields(entry)
		for _, name := range []string{"spec", "template", "spec"} {
			pods = pods.WithPrefix(fieldpath.PathElement{FieldName: &name})
		}
		if !pods.Empty() {
			return true
		}
	}
	return false
}

// isScaled reports whether an autoscaler owns the number of pods: its last writer used the subresource scale.
func isScaled(deployment *appsv1.Deployment) bool {
	for _, entry := range deployment.ManagedFields {
		if entry.Subresource == "scale" && readFields(entry).Has(fieldpath.MakePathOrDie("spec", "replicas")) {
			return true
		}
	}
	return false
}
