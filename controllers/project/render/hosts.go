package render

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// EveryHost stands for the host of an Ingress that names none.
const EveryHost = "*"

// IngressHost returns the host name that the project's Ingress answers to, or EveryHost; empty where the project wants none.
func IngressHost(p *verifyv1.VerificationProject) string {
	if p.Spec.Expose.Ingress == nil {
		return ""
	}
	if host := hostname(p.Spec.EffectiveIngressHost()); host != "" {
		return host
	}
	return EveryHost
}

// RouteHosts returns the host names that the project's HTTPRoute answers to. It is empty where the project wants no HTTPRoute,
// and where the route names no host: then it answers to what its Gateways, of the same namespace, do.
func RouteHosts(p *verifyv1.VerificationProject) []string {
	settings := p.Spec.Expose.HTTPRoute
	if settings == nil {
		return nil
	}
	var hosts []string
	for _, host := range settings.Hostnames {
		hosts = append(hosts, string(host))
	}
	if base := hostname(p.Spec.BaseHost()); len(hosts) == 0 && base != "" {
		hosts = append(hosts, base)
	}
	return hosts
}

// SetRouteHosts replaces the host names of an HTTPRoute.
func SetRouteHosts(route *unstructured.Unstructured, hosts []string) {
	_ = unstructured.SetNestedStringSlice(route.Object, hosts, "spec", "hostnames") // spec is a map: HTTPRoute made it
}

// Paths returns the paths that Ingress and HTTPRoute lead to.
func Paths(p *verifyv1.VerificationProject) []string {
	var paths []string
	for _, e := range exposedPaths(p) {
		paths = append(paths, e.path)
	}
	return paths
}
