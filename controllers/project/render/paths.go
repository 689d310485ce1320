package render

import (
	"net/netip"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// exposedPath is a path that is reachable from outside.
type exposedPath struct {
	path   string
	prefix bool // includes all paths below it
}

// exposedPaths returns the paths that Ingress and HTTPRoute expose, and nothing else: the API, the messengers' callbacks, the
// API's description, and the pages of a project that has one.
func exposedPaths(p *verifyv1.VerificationProject) []exposedPath {
	base := p.Spec.BasePath()
	paths := []exposedPath{
		{path: base + "/api/verify/", prefix: true},
		{path: base + "/hooks/whatsapp"},
		{path: base + "/hooks/telegram"},
		{path: base + "/openapi.json"},
	}
	if p.Spec.Page != nil {
		paths = append(paths, exposedPath{path: base + "/v/", prefix: true})
	}
	return paths
}

// dnsHost returns host, or nothing for an IP address: no rule with a host name matches requests to one.
func dnsHost(host string) string {
	if _, err := netip.ParseAddr(host); err == nil {
		return ""
	}
	return host
}
