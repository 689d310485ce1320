package doctor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/phoneproof/phoneproof/internal/server"
)

// servePhoneProof serves a project of a file, and returns where.
func servePhoneProof(t *testing.T, simulatorURL string) string {
	t.Helper()
	g := NewWithT(t)
	dir := t.TempDir()
	for key, value := range map[string]string{"api-key": apiKey, "token": accessToken, "secret": appSecret} {
		writeFile(t, dir, "secrets/shop/"+key, value)
	}
	file := writeFile(t, dir, "project.yaml", `apiVersion: phoneproof.dev/v1alpha1
kind: VerificationProject
metadata: {name: books, namespace: shop}
spec:
  apiKeys:
  - name: backend
    secretRef: {name: shop, key: api-key}
  whatsapp:
    phoneNumber: "`+ownNumber+`"
    phoneNumberID: "1234567890"
    accessTokenSecretRef: {name: shop, key: token}
    appSecretRef: {name: shop, key: secret}
`)
	api, probes := listen(t), listen(t)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() {
		ended <- server.Run(ctx, server.Options{
			ProjectFile: file, SecretsDir: dir + "/secrets", Store: server.StoreMemory,
			Platforms: server.PlatformOptions{SimulatorURL: simulatorURL},
		}, server.Dependencies{Listener: api, HealthListener: probes})
	}()
	t.Cleanup(func() {
		stop()
		g.Expect(<-ended).To(Succeed())
	})
	return "http://" + api.Addr().String()
}

// forwardTo is a proxy that takes a prefix away.
func forwardTo(t *testing.T, address, prefix string) http.Handler {
	t.Helper()
	u, err := url.Parse(address)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return http.StripPrefix(prefix, httputil.NewSingleHostReverseProxy(u))
}

// authority issues certificates.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pool *x509.CertPool
}

// leaf is how a certificate differs from a good one for 127.0.0.1.
type leaf struct {
	ended bool
	name  string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	g := NewWithT(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	g.Expect(err).NotTo(HaveOccurred())
	cert, err := x509.ParseCertificate(der)
	g.Expect(err).NotTo(HaveOccurred())
	a := &authority{key: key, cert: cert, pool: x509.NewCertPool()}
	a.pool.AddCert(cert)
	return a
}

func (a *authority) issue(t *testing.T, l leaf) tls.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-23 * time.Hour), NotAfter: time.Now().Add(23 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if l.ended {
		template.NotAfter = time.Now().Add(-time.Hour)
	}
	if l.name != "" {
		template.IPAddresses, template.DNSNames = nil, []string{l.name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, a.key.Public(), a.key)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: a.key}
}

// serve serves a handler by https with a certificate, and returns where.
func (a *authority) serve(t *testing.T, handler http.Handler, certificate tls.Certificate) string {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = nil
	s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

// emptyDNS is a name server that knows no name.
func emptyDNS(t *testing.T) *net.Resolver {
	t.Helper()
	g := NewWithT(t)
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, from, err := server.ReadFrom(buffer)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buffer[:n]) != nil {
				continue
			}
			m.Response, m.RCode, m.Additionals = true, dnsmessage.RCodeNameError, nil
			if reply, err := m.Pack(); err == nil {
				_, _ = server.WriteTo(reply, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		if !strings.HasPrefix(network, "udp") {
			return nil, net.UnknownNetworkError(network)
		}
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}
