package integration_test

import (
	"io"
	"net/http"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/apiproxy"
)

// startProxy makes replicas that start from now on reach the API server through a proxy, with their own tokens.
func (s *shop) startProxy() *apiproxy.Proxy {
	GinkgoHelper()
	proxy, err := apiproxy.Listen(s.config, "verificationrequests", nil)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(proxy.Close)
	s.kubeconfig = s.writeConfig("https://"+proxy.Address, s.token, proxy.CA)
	return proxy
}

// refuseLeases refuses every call about leases.
func refuseLeases(w http.ResponseWriter, r *http.Request) bool {
	if !strings.Contains(r.URL.Path, "/leases") {
		return false
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	return true
}

// fakeLease returns an answer with a lease of its own, which clients hold regardless of the API server's lease.
func fakeLease() func(w http.ResponseWriter, r *http.Request) bool {
	var mu sync.Mutex
	var lease []byte
	contentType := "application/json"
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/leases") {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		if body, err := io.ReadAll(r.Body); err == nil && len(body) > 0 {
			lease, contentType = body, r.Header.Get("Content-Type")
		}
		w.Header().Set("Content-Type", contentType)
		if lease == nil {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
			return true
		}
		_, _ = w.Write(lease)
		return true
	}
}
