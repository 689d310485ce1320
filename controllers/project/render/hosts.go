package render

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// EveryHost stands for the host of an Ingress without one.
const EveryHost = "*"

// IngressHost returns the host name of the project's Ingress, or EveryHost; empty if the project wants no Ingress.
func IngressHost(p *verifyv1.VerificationProject) string {
	if p.Spec.Expose.Ingress == nil {
		return ""
	}
	if host := dnsHost(p.Spec.EffectiveIngressHost()); host != "" {
		return host
	}
	return EveryHost
}

// RouteHosts returns the host names of the project's HTTPRoute. It is empty if the project wants no HTTPRoute, or if the route
// names no host: then it answers to the hosts of its Gateways in the same namespace.
func RouteHosts(p *verifyv1.VerificationProject) []string {
	settings := p.Spec.Expose.HTTPRoute
	if settings == nil {
		return nil
	}
	var hosts []string
	for _, host := range settings.Hostnames {
		hosts = append(hosts, string(host))
	}
	if base := dnsHost(p.Spec.BaseHost()); len(hosts) == 0 && base != "" {
		hosts = append(hosts, base)
	}
	return hosts
}

// SetRouteHosts replaces the host names of an HTTPRoute.
func SetRouteHosts(route *unstructured.Unstructured, hosts []string) {
	_ = unstructured.SetNestedStringSlice(route.Object, hosts, "spec", "hostnames") // spec is a map: HTTPRoute made it
}

// Paths returns the paths that Ingress and HTTPRoute expose.
func Paths(p *verifyv1.VerificationProject) []string {
	var paths []string
	for _, e := range exposedPaths(p) {
		paths = append(paths, e.path)
	}
	return paths
}
