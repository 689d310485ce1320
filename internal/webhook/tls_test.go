package webhook

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/net/http2"
)

var quiet = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)

func startHTTP2(server *httptest.Server) {
	server.EnableHTTP2 = true
	server.StartTLS()
}

func bundleOf(server *httptest.Server) []byte {
	if server.Certificate() == nil {
		return nil
	}
	return toPEM(server.Certificate().Raw)
}

func toPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// limitFiles lowers the number of files that the process may open, and returns a function that restores it.
func limitFiles(t *testing.T) func() {
	t.Helper()
	g := NewWithT(t)
	var before syscall.Rlimit
	g.Expect(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before)).To(Succeed())
	g.Expect(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: min(256, before.Max), Max: before.Max})).To(Succeed())
	return func() { g.Expect(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before)).To(Succeed()) }
}

// authority issues certificates for tests.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	g := NewWithT(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	g.Expect(err).NotTo(HaveOccurred())
	cert, err := x509.ParseCertificate(der)
	g.Expect(err).NotTo(HaveOccurred())
	return &authority{t: t, cert: cert, key: key}
}

func (a *authority) bundlePEM() []byte { return toPEM(a.cert.Raw) }

func (a *authority) issueCert(change func(*x509.Certificate)) *tls.Certificate {
	g := NewWithT(a.t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"shop.test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &a.key.PublicKey, a.key)
	g.Expect(err).NotTo(HaveOccurred())
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: a.key}
}

// serveTLS starts a server that answers 200 with the current certificate of present.
func serveTLS(t *testing.T, present *atomic.Pointer[tls.Certificate], change func(*tls.Config)) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Proto", r.Proto)
	}))
	server.Config.ErrorLog = quiet
	server.EnableHTTP2 = true
	// Not GetCertificate, which is not called for a host that is an address.
	server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		config := &tls.Config{Certificates: []tls.Certificate{*present.Load()}, NextProtos: []string{"h2", "http/1.1"}}
		change(config)
		return config, nil
	}}
	change(server.TLS)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// TestSend_tls sends to servers with every common TLS fault. Verification cannot be disabled.
func TestSend_tls(t *testing.T) {
	ours, other := newAuthority(t), newAuthority(t)
	for name, c := range map[string]struct {
		certificate *tls.Certificate
		config      func(*tls.Config)
		bundle      []byte
		want        Reason
	}{
		"trusted":       {certificate: ours.issueCert(func(*x509.Certificate) {}), bundle: ours.bundlePEM()},
		"two in bundle": {certificate: ours.issueCert(func(*x509.Certificate) {}), bundle: append(other.bundlePEM(), ours.bundlePEM()...)},
		"expired": {certificate: ours.issueCert(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }),
			bundle: ours.bundlePEM(), want: ReasonTLSExpired},
		"not yet valid": {certificate: ours.issueCert(func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }),
			bundle: ours.bundlePEM(), want: ReasonTLSExpired},
		"wrong host": {certificate: ours.issueCert(func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 2)} }),
			bundle: ours.bundlePEM(), want: ReasonTLSHostname},
		"public authorities": {certificate: ours.issueCert(func(*x509.Certificate) {}), want: ReasonTLSUntrusted},
		"other authority":    {certificate: ours.issueCert(func(*x509.Certificate) {}), bundle: other.bundlePEM(), want: ReasonTLSUntrusted},
		"TLS 1.0": {certificate: ours.issueCert(func(*x509.Certificate) {}), bundle: ours.bundlePEM(), want: ReasonTLS,
			config: func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS10 }},
		"TLS 1.1": {certificate: ours.issueCert(func(*x509.Certificate) {}), bundle: ours.bundlePEM(), want: ReasonTLS,
			config: func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }},
		"TLS 1.2": {certificate: ours.issueCert(func(*x509.Certificate) {}), bundle: ours.bundlePEM(),
			config: func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }},
	} {
		t.Run(name, func(t *testing.T) {
			if c.config == nil {
				c.config = func(*tls.Config) {}
			}
			var present atomic.Pointer[tls.Certificate]
			present.Store(c.certificate)
			to := testDestination(serveTLS(t, &present, c.config).URL)
			to.caBundle = c.bundle
			NewWithT(t).Expect(sendEvent(t, newSender(t, Options{}), to).Reason).To(Equal(c.want))
		})
	}
}

// TestSend_clientCertificate sends to servers that ask for a client certificate, and wait for the client to close the connection
// after they have refused it.
func TestSend_clientCertificate(t *testing.T) {
	ours := newAuthority(t)
	for _, proto := range []string{"http/1.1", "h2"} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			t.Run(proto+" by "+tls.VersionName(version), func(t *testing.T) {
				config := &tls.Config{
					Certificates: []tls.Certificate{*ours.issueCert(func(*x509.Certificate) {})}, ClientAuth: tls.RequireAnyClientCert,
					NextProtos: []string{proto}, MaxVersion: version,
				}
				listener := listenOn(t, "127.0.0.1:0")
				go acceptAll(listener, func(conn net.Conn) {
					_ = tls.Server(conn, config).Handshake()
					_, _ = io.Copy(io.Discard, conn)
				})
				to := testDestination("https://" + listener.Addr().String())
				to.caBundle = ours.bundlePEM()
				NewWithT(t).Expect(sendEvent(t, newSender(t, Options{}), to).Verdict).To(Equal(Verdict{Outcome: Retry, Reason: ReasonTLS}))
			})
		}
	}
}

func TestSend_tlsToAPlainServer(t *testing.T) {
	server, _ := newReceiver(t, http.StatusOK)
	result := sendEvent(t, newSender(t, Options{}), testDestination("https"+server.URL[len("http"):]))
	NewWithT(t).Expect(result.Reason).To(Equal(ReasonTLS))
}

func TestSend_certificateRotatedMidRun(t *testing.T) {
	g := NewWithT(t)
	first, second := newAuthority(t), newAuthority(t)
	var present atomic.Pointer[tls.Certificate]
	present.Store(first.issueCert(func(*x509.Certificate) {}))
	server := serveTLS(t, &present, func(*tls.Config) {})
	server.Config.SetKeepAlivesEnabled(false) // so that each attempt has its own handshake
	s := newSender(t, Options{})
	to := testDestination(server.URL)
	to.caBundle = first.bundlePEM()
	g.Expect(sendEvent(t, s, to).Outcome).To(Equal(Delivered))

	present.Store(second.issueCert(func(*x509.Certificate) {}))
	g.Expect(sendEvent(t, s, to).Reason).To(Equal(ReasonTLSUntrusted))
	to.caBundle = second.bundlePEM()
	g.Expect(sendEvent(t, s, to).Outcome).To(Equal(Delivered), "a new bundle has its own connections")
}

func TestSend_speaksHTTP2(t *testing.T) {
	g := NewWithT(t)
	protos := make(chan string, 2*SlowStart)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		protos <- r.Proto
	}))
	server.Config.ErrorLog = quiet
	startHTTP2(server)
	defer server.Close()
	s := newSender(t, Options{})
	to := testDestination(server.URL)
	to.caBundle = bundleOf(server)
	results := make(chan Outcome, SlowStart)
	for range SlowStart {
		go func() { results <- sendEvent(t, s, to).Outcome }()
	}
	for range SlowStart {
		g.Expect(<-results).To(Equal(Delivered))
		g.Expect(<-protos).To(Equal("HTTP/2.0"))
	}
}

// TestSend_goAway checks HTTP/2 connections that end: an orderly end does no harm, and one in the middle is a failed
// attempt.
func TestSend_goAway(t *testing.T) {
	t.Run("after the answer", func(t *testing.T) {
		g := NewWithT(t)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close") // net/http sends a GOAWAY
		}))
		startHTTP2(server)
		defer server.Close()
		s := newSender(t, Options{})
		to := testDestination(server.URL)
		to.caBundle = bundleOf(server)
		for range 5 {
			g.Expect(sendEvent(t, s, to).Outcome).To(Equal(Delivered))
		}
	})
	t.Run("instead of an answer", func(t *testing.T) {
		a := newAuthority(t)
		listener := listenOn(t, "127.0.0.1:0")
		config := &tls.Config{Certificates: []tls.Certificate{*a.issueCert(func(*x509.Certificate) {})}, NextProtos: []string{"h2"}}
		go acceptAll(listener, func(conn net.Conn) {
			goAway(tls.Server(conn, config))
		})
		to := testDestination("https://" + listener.Addr().String())
		to.caBundle = a.bundlePEM()
		result := sendEvent(t, newSender(t, Options{}), to)
		NewWithT(t).Expect(result.Verdict).To(Equal(Verdict{Outcome: Retry, Reason: ReasonConnection}))
	})
}

// goAway answers the first request of an HTTP/2 connection with a GOAWAY that includes its stream, so it may have been
// processed.
func goAway(conn net.Conn) {
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	framer := http2.NewFramer(conn, conn)
	_ = framer.WriteSettings()
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		if data, ok := frame.(*http2.DataFrame); ok {
			_ = framer.WriteGoAway(data.StreamID, http2.ErrCodeInternal, []byte("canary debug data"))
			return
		}
	}
}

func TestTransports_areSharedWithinANamespaceAndBundle(t *testing.T) {
	g := NewWithT(t)
	pools := newTransports(NewGuard(GuardConfig{}), nil)
	get := func(namespace string, bundle []byte) *http.Transport {
		transport, err := pools.transportFor(namespace, bundle)
		g.Expect(err).NotTo(HaveOccurred())
		return transport
	}
	bundle := newAuthority(t).bundlePEM()
	shop := get("shop", nil)
	g.Expect(get("shop", nil)).To(BeIdenticalTo(shop))
	g.Expect(get("bank", nil)).NotTo(BeIdenticalTo(shop), "namespaces must not share connections")
	g.Expect(get("shop", bundle)).NotTo(BeIdenticalTo(shop))
	for i := range 3 * maxTransports {
		get("shop", nil)
		get(string(rune('a'+i)), nil)
	}
	g.Expect(pools.pools).To(HaveLen(maxTransports))
	g.Expect(get("shop", nil)).To(BeIdenticalTo(shop), "the least recently used pool is closed")
	g.Expect(shop.Proxy).To(BeNil())
	g.Expect(shop.IdleConnTimeout).To(BeNumerically("<", 2*time.Second), "Gunicorn closes idle connections then, and a reset costs an attempt")
}
