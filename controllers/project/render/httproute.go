package render

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// HTTPRouteKind is the kind of the Gateway API. There is no Go type for it here, because the API is optional and only four of its
// fields are used.
var HTTPRouteKind = schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"}

// HTTPRoute connects a Gateway to the Service; nil if the project wants none, or the cluster has no such kind. Its lists are
// atomic, so the defaults that the API server would add to their elements are set here.
func HTTPRoute(p *verifyv1.VerificationProject, o Options) *unstructured.Unstructured {
	settings := p.Spec.Expose.HTTPRoute
	if settings == nil || !o.HTTPRoutes {
		return nil
	}
	spec := map[string]any{"parentRefs": listGateways(settings.ParentRefs), "rules": routeRules(p)}
	route := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	if hosts := RouteHosts(p); len(hosts) > 0 {
		SetRouteHosts(route, hosts)
	}
	route.SetGroupVersionKind(HTTPRouteKind)
	route.SetName(Name(p.Name))
	route.SetNamespace(p.Namespace)
	route.SetLabels(Labels(p))
	owner := OwnerReference(p)
	_ = unstructured.SetNestedSlice(route.Object, []any{map[string]any{
		"apiVersion": *owner.APIVersion, "kind": *owner.Kind, "name": *owner.Name, "uid": string(*owner.UID), "controller": true,
	}}, "metadata", "ownerReferences") // metadata is a map: the setters before made it
	return route
}

func listGateways(refs []verifyv1.GatewayRef) []any {
	var parents []any
	for _, ref := range refs {
		parent := map[string]any{"group": HTTPRouteKind.Group, "kind": "Gateway", "name": ref.Name}
		if ref.SectionName != "" {
			parent["sectionName"] = ref.SectionName
		}
		parents = append(parents, parent)
	}
	return parents
}

func routeRules(p *verifyv1.VerificationProject) []any {
	var matches []any
	for _, e := range exposedPaths(p) {
		kind := "Exact"
		if e.prefix {
			kind = "PathPrefix"
		}
		matches = append(matches, map[string]any{"path": map[string]any{"type": kind, "value": e.path}})
	}
	return []any{map[string]any{
		"matches": matches,
		"backendRefs": []any{map[string]any{
			"group": "", "kind": "Service", "name": Name(p.Name), "port": int64(servicePort), "weight": int64(1),
		}},
	}}
}
