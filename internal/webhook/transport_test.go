package webhook

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
)

// A project with its own authorities does not trust public ones.
func TestRootsOf_theBundleAlone(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	alone := x509.NewCertPool()
	alone.AddCert(server.Certificate())

	roots, err := rootsOf(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(roots.Equal(alone)).To(BeTrue())

	g.Expect(rootsOf([]byte("no certificate"))).Error().To(MatchError(errBadCABundle))
	g.Expect(rootsOf(nil)).To(BeNil(), "the system's")
}
