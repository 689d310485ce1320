package render

import (
	"testing"

	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

func TestHosts(t *testing.T) {
	ingress := func(host string) *verifyv1.IngressSettings {
		return &verifyv1.IngressSettings{Host: verifyv1.Hostname(host)}
	}
	for name, test := range map[string]struct {
		baseURL string
		expose  verifyv1.Expose
		ingress string
		routes  []string
	}{
		"none wanted":                  {"https://a.example.com", verifyv1.Expose{}, "", nil},
		"by baseURL, without its port": {"https://a.example.com:8443/x", verifyv1.Expose{Ingress: ingress(""), HTTPRoute: &verifyv1.HTTPRouteSettings{}}, "a.example.com", []string{"a.example.com"}},
		"of their own":                 {"https://a.example.com", verifyv1.Expose{Ingress: ingress("b.example.com"), HTTPRoute: &verifyv1.HTTPRouteSettings{Hostnames: []verifyv1.Hostname{"*.c.example.com", "d.example.com"}}}, "b.example.com", []string{"*.c.example.com", "d.example.com"}},
		"an IP address":                {"http://192.0.2.1", verifyv1.Expose{Ingress: ingress(""), HTTPRoute: &verifyv1.HTTPRouteSettings{}}, EveryHost, nil},
		"no base URL":                  {"", verifyv1.Expose{HTTPRoute: &verifyv1.HTTPRouteSettings{}}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := &verifyv1.VerificationProject{}
			p.Spec.BaseURL, p.Spec.Expose = test.baseURL, test.expose
			g.Expect(IngressHost(p)).To(Equal(test.ingress))
			g.Expect(RouteHosts(p)).To(Equal(test.routes))
		})
	}
}
