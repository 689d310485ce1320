package apply

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// toContent returns an apply configuration as the JSON object that is sent, so that two of them can be compared.
func toContent(configuration any) (map[string]any, error) {
	data, err := json.Marshal(configuration)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", configuration, err)
	}
	var u unstructured.Unstructured
	if err := u.UnmarshalJSON(data); err != nil {
		return nil, fmt.Errorf("decode %T: %w", configuration, err)
	}
	return u.Object, nil
}

// httpRouteType is the schema of an HTTPRoute's managedFields: as in all custom resources lists are atomic and maps are not,
// except in the metadata, which is the same in all kinds.
var httpRouteType = func() typed.ParseableType {
	parser, err := typed.NewParser(`types:
- name: HTTPRoute
  map:
    fields:
    - name: metadata
      type:
        namedType: ObjectMeta
    elementType:
      namedType: __untyped_deduced_
- name: ObjectMeta
  map:
    fields:
    - name: ownerReferences
      type:
        list:
          elementType:
            namedType: __untyped_atomic_
          elementRelationship: associative
          keys: [uid]
    elementType:
      namedType: __untyped_deduced_
- name: __untyped_atomic_
  scalar: untyped
  list:
    elementType:
      namedType: __untyped_atomic_
    elementRelationship: atomic
  map:
    elementType:
      namedType: __untyped_atomic_
    elementRelationship: atomic
- name: __untyped_deduced_
  scalar: untyped
  list:
    elementType:
      namedType: __untyped_atomic_
    elementRelationship: atomic
  map:
    elementType:
      namedType: __untyped_deduced_
    elementRelationship: separable
`)
	if err != nil {
		panic(err) // the text is a constant
	}
	return parser.Type("HTTPRoute")
}()

// httpRouteConfiguration holds the fields of an HTTPRoute that can be owned.
type httpRouteConfiguration struct {
	metav1ac.TypeMetaApplyConfiguration

	Metadata *metav1ac.ObjectMetaApplyConfiguration `json:"metadata,omitempty"`
	Spec     map[string]any                         `json:"spec,omitempty"`
}

func extractHTTPRoute(object client.Object) (map[string]any, error) {
	route := httpRouteConfiguration{Metadata: &metav1ac.ObjectMetaApplyConfiguration{}}
	if err := managedfields.ExtractInto(object, httpRouteType, string(FieldOwner), &route, ""); err != nil {
		return nil, fmt.Errorf("extract owned fields: %w", err)
	}
	if route.Metadata == nil {
		route.Metadata = &metav1ac.ObjectMetaApplyConfiguration{}
	}
	route.Metadata.Name, route.Metadata.Namespace = new(object.GetName()), new(object.GetNamespace())
	version, kind := object.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	route.APIVersion, route.Kind = &version, &kind
	return toContent(route)
}
