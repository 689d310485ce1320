package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Mapper knows the resources of this group. A client that uses it asks the API server for nothing before its first real
// call, so a process can start while the API server is away.
func Mapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{GroupVersion})
	for _, kind := range []string{VerificationProjectKind, VerificationRequestKind} {
		mapper.Add(GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	return mapper
}
