package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Mapper returns the resources of this group. Clients that use it need no discovery, so a process can start while the API
// server is unavailable.
func Mapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{GroupVersion})
	for _, kind := range []string{VerificationProjectKind, VerificationRequestKind} {
		mapper.Add(GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	return mapper
}
