package render

import (
	"net/netip"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// exposed is a path that is reachable from outside.
type exposed struct {
	path   string
	prefix bool // whatever is below it too
}

// exposedPaths returns what Ingress and HTTPRoute lead to, and nothing else: the API, the messengers' callbacks, and the
// API's description.
func exposedPaths(p *verifyv1.VerificationProject) []exposed {
	base := p.Spec.BasePath()
	return []exposed{
		{path: base + "/api/verify/", prefix: true},
		{path: base + "/hooks/whatsapp"},
		{path: base + "/hooks/telegram"},
		{path: base + "/openapi.json"},
	}
}

// hostname returns host, or nothing for an IP address: requests to one can be matched by no rule that names a host.
func hostname(host string) string {
	if _, err := netip.ParseAddr(host); err == nil {
		return ""
	}
	return host
}
