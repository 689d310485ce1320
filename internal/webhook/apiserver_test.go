package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/controlplane"
)

// TestSend_apiServer sends an event to a real API server at an address and port that no rule refuses, as if 10.0.0.0/8
// is allowed and the API server listens on port 443 there. Its certificate has the names that every installer adds, and
// the project's author knows its authority from the ConfigMap kube-root-ca.crt.
func TestSend_apiServer(t *testing.T) {
	g := NewWithT(t)
	authority := newAuthority(t)
	file, key := writePair(t, authority.issueCert(func(c *x509.Certificate) {
		c.DNSNames = []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost"}
	}))
	plane, err := controlplane.Start(controlplane.Options{
		WithoutCRDs: true, APIServerArgs: map[string]string{"tls-sni-cert-key": file + "," + key + ":localhost"},
	})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(plane.Stop()).To(Succeed()) })
	address, err := url.Parse(plane.Config.Host)
	g.Expect(err).NotTo(HaveOccurred())
	if address.Host == "" {
		address.Host = plane.Config.Host
	}

	to := testDestination("https://localhost:" + address.Port() + "/api/v1/namespaces")
	to.caBundle = authority.bundlePEM()
	result := sendEvent(t, newSender(t, Options{Guard: NewDevGuard(GuardConfig{})}), to)
	g.Expect(result.Verdict).To(Equal(Verdict{Outcome: Retry, Reason: ReasonBlockedAddress}), "no answer is read")
}

// writePair writes a certificate and its key as PEM and returns the files.
func writePair(t *testing.T, pair *tls.Certificate) (certificate, key string) {
	t.Helper()
	g := NewWithT(t)
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	g.Expect(err).NotTo(HaveOccurred())
	dir := t.TempDir()
	certificate, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	g.Expect(os.WriteFile(certificate, toPEM(pair.Certificate[0]), 0o600)).To(Succeed())
	g.Expect(os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)).To(Succeed())
	return certificate, key
}

// TestSend_certificateOfTheAPIServer sends to receivers whose certificate resembles the API server's.
func TestSend_certificateOfTheAPIServer(t *testing.T) {
	authority := newAuthority(t)
	for name, want := range map[string]Reason{
		"kubernetes.default.svc":       ReasonBlockedAddress,
		"*.default.svc":                "", // a receiver in the namespace default may have such a certificate
		"shop.default.svc":             "",
		"kubernetes.default.svc.local": "",
	} {
		t.Run(name, func(t *testing.T) {
			var present atomic.Pointer[tls.Certificate]
			present.Store(authority.issueCert(func(c *x509.Certificate) {
				c.DNSNames, c.IPAddresses = []string{name}, []net.IP{net.IPv4(127, 0, 0, 1)}
			}))
			to := testDestination(serveTLS(t, &present, func(*tls.Config) {}).URL)
			to.caBundle = authority.bundlePEM()
			NewWithT(t).Expect(sendEvent(t, newSender(t, Options{}), to).Reason).To(Equal(want))
		})
	}
}
