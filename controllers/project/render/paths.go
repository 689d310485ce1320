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

// exposedPaths returns the paths that Ingress and HTTPRoute expose, and nothing else: the API, the messengers' callbacks, and the
// API's description.
func exposedPaths(p *verifyv1.VerificationProject) []exposedPath {
	base := p.Spec.BasePath()
	return []exposedPath{
		{path: base + "/api/verify/", prefix: true},
		{path: base + "/hooks/whatsapp"},
		{path: base + "/hooks/telegram"},
		{path: base + "/openapi.json"},
	}
}

// dnsHost returns host, or nothing for an IP address: no rule with a host name matches requests to one.
func dnsHost(host string) string {
	if _, err := netip.ParseAddr(host); err == nil {
		return ""
	}
	return host
}
