package doctor

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/version"
)

// readCRDs finds the fields of this version's types that the cluster's CRDs do not have.
func (e *Examiner) readCRDs(ctx context.Context, f *Facts) {
	var missing []string
	for name, kind := range map[string]reflect.Type{
		"verificationprojects.phoneproof.dev": reflect.TypeFor[verifyv1.VerificationProject](),
	} {
		crd := &unstructured.Unstructured{}
		crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		if err := e.client.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
			f.MissingFields.Why = explainUnread(err, "get customresourcedefinitions.apiextensions.k8s.io", "")
			return
		}
		properties := servedProperties(crd)
		for _, part := range []string{"spec", "status"} {
			field, _ := kind.FieldByName(strings.ToUpper(part[:1]) + part[1:])
			missing = append(missing, findMissing(field.Type, properties[part], part)...)
		}
	}
	f.MissingFields = knownValue(missing)
}

// servedProperties returns the fields of the version that this program speaks.
func servedProperties(crd *unstructured.Unstructured) map[string]any {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions") // nothing is found in an object of another form
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if version["name"] == verifyv1.GroupVersion.Version {
			properties, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema", "properties")
			return properties
		}
	}
	return nil
}

// findMissing returns the paths of fields that a type has and a schema does not. Types of Kubernetes are not compared.
func findMissing(t reflect.Type, node any, path string) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		if t.Kind() == reflect.Slice {
			object, _ := node.(map[string]any)
			node = object["items"]
		}
		t = t.Elem()
	}
	object, ok := node.(map[string]any)
	if !ok {
		return []string{path}
	}
	if t.Kind() != reflect.Struct || t.PkgPath() != reflect.TypeFor[verifyv1.WhatsApp]().PkgPath() {
		return nil
	}
	properties, _ := object["properties"].(map[string]any)
	var missing []string
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" { // embedded
			continue
		}
		missing = append(missing, findMissing(field.Type, properties[name], path+"."+name)...)
	}
	return missing
}

// dropForeignVersion drops the comparison of the CRDs if the operator is known to be of another version than this program: then
// they need not have its fields.
func dropForeignVersion(f *Facts) {
	own := version.Version()
	if len(f.MissingFields.Value) == 0 || own == "dev" {
		return
	}
	for i := range f.Operators.Value {
		if other := imageTag(&f.Operators.Value[i]); other != "" && strings.TrimPrefix(other, "v") != strings.TrimPrefix(own, "v") {
			f.MissingFields = Known[[]string]{
				Why: fmt.Sprintf("the operator is of version %s, and this program of %s: use that of its version", other, own),
			}
			return
		}
	}
}

// imageTag returns the tag of a Deployment's image; empty if it has none.
func imageTag(d *appsv1.Deployment) string {
	if len(d.Spec.Template.Spec.Containers) == 0 {
		return ""
	}
	image, _, _ := strings.Cut(d.Spec.Template.Spec.Containers[0].Image, "@")
	name := image[strings.LastIndex(image, "/")+1:]
	_, tag, _ := strings.Cut(name, ":")
	return tag
}
