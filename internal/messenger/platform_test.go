package messenger

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	. "github.com/onsi/gomega"
)

// TestPlatform_noProxyToTheSimulator: a proxy would learn what is meant for the simulator alone, and may lead elsewhere.
func TestPlatform_noProxyToTheSimulator(t *testing.T) {
	g := NewWithT(t)
	proxy := &url.URL{Scheme: "http", Host: "proxy.example.com:3128"}
	of := proxyExcept("simulator.example.com:8090", func(*http.Request) (*url.URL, error) { return proxy, nil })
	g.Expect(of(httptest.NewRequest(http.MethodPost, "http://simulator.example.com:8090/botsim_x/getMe", http.NoBody))).To(BeNil())
	g.Expect(of(httptest.NewRequest(http.MethodPost, "https://api.telegram.org/bot1:x/getMe", http.NoBody))).To(Equal(proxy))
}
