package webhook

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// errBadCABundle says that a caBundle holds no certificate.
var errBadCABundle = errors.New("no certificate in the CA bundle")

// poolKey says which endpoints may share connections. The guard judges a connection by the namespace, and TLS by the
// bundle, so neither may use what was dialed under another one.
type poolKey struct {
	namespace string
	caBundle  [sha256.Size]byte
}

// transports are the pools of connections, a few at a time.
type transports struct {
	guard    *Guard
	resolver *net.Resolver

	mu    sync.Mutex
	pools map[poolKey]*pool
	uses  uint64
}

type pool struct {
	*http.Transport

	lastUse uint64
}

func newTransports(guard *Guard, resolver *net.Resolver) *transports {
	return &transports{guard: guard, resolver: resolver, pools: map[poolKey]*pool{}}
}

// transportFor returns the pool of a namespace and caBundle. It makes it when it is not there and closes the one unused for
// longest when there are too many.
func (t *transports) transportFor(namespace string, caBundle []byte) (*http.Transport, error) {
	key := poolKey{namespace: namespace}
	if len(caBundle) > 0 {
		key.caBundle = sha256.Sum256(caBundle)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.pools[key]
	if p == nil {
		roots, err := rootsOf(caBundle)
		if err != nil {
			return nil, err
		}
		t.evictOldest()
		p = &pool{Transport: t.newTransport(namespace, roots)}
		t.pools[key] = p
	}
	t.uses++
	p.lastUse = t.uses
	return p.Transport, nil
}

func (t *transports) evictOldest() {
	if len(t.pools) < maxTransports {
		return
	}
	var oldest poolKey
	least := t.uses + 1
	for key, p := range t.pools {
		if p.lastUse < least {
			oldest, least = key, p.lastUse
		}
	}
	t.pools[oldest].CloseIdleConnections()
	delete(t.pools, oldest)
}

func (t *transports) closeIdle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.pools {
		p.CloseIdleConnections()
	}
}

// rootsOf returns the authorities that a caBundle names, in place of the public ones as everywhere in Kubernetes: whoever
// runs a private authority does not want any other to speak for his receiver. Without a bundle it returns nil, the
// system's.
func rootsOf(caBundle []byte) (*x509.CertPool, error) {
	if len(caBundle) == 0 {
		return nil, nil
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(caBundle) {
		return nil, errBadCABundle
	}
	return roots, nil
}

func (t *transports) newTransport(namespace string, roots *x509.CertPool) *http.Transport {
	config := &tls.Config{
		MinVersion: tls.VersionTLS12,
		RootCAs:    roots,
		NextProtos: []string{"h2", "http/1.1"},
	}
	return &http.Transport{
		// Not http.ProxyFromEnvironment: a proxy would connect where the guard cannot see.
		Proxy: nil,
		// Own dialers switch HTTP/2 off unless this is set.
		ForceAttemptHTTP2: true,
		HTTP2:             &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return t.dialTarget(ctx, network, address, namespace, true)
		},
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := t.dialTarget(ctx, network, address, namespace, false)
			if err != nil {
				return nil, err
			}
			return handshakeTLS(ctx, conn, address, config)
		},
		// Else a small gzip body could become a large one in memory.
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
		MaxConnsPerHost:        MaxInFlight,
		MaxIdleConnsPerHost:    MaxInFlight,
		MaxIdleConns:           4 * MaxInFlight,
		IdleConnTimeout:        maxIdle,
	}
}

// dialTarget connects to an address that the guard allows. That there are two dialers, one for plain http and one for https,
// is how the guard knows which one it judges.
func (t *transports) dialTarget(ctx context.Context, network, address, namespace string, plain bool) (net.Conn, error) {
	var tried atomic.Int32
	dialer := net.Dialer{
		Timeout:        maxDial,
		Resolver:       t.resolver,
		ControlContext: t.guard.dialControl(namespace, plain, &tried),
	}
	return dialer.DialContext(ctx, network, address)
}

// handshakeTLS makes a TLS connection of conn, or closes it. It marks the error, which cannot be told from others later. The server's
// certificate was checked by then, so there is one.
func handshakeTLS(ctx context.Context, conn net.Conn, address string, config *tls.Config) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		_ = conn.Close()
		return nil, handshakeError{err}
	}
	config = config.Clone()
	config.ServerName = host
	ctx, cancel := context.WithTimeout(ctx, maxDial)
	defer cancel()
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, handshakeError{err}
	}
	if err := checkCertificate(secured.ConnectionState().PeerCertificates[0]); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secured, nil
}
