package webhook

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// errBadCABundle is the error of a caBundle that holds no certificate.
var errBadCABundle = errors.New("no certificate in the CA bundle")

// poolKey identifies the endpoints that may share connections. The guard checks a connection for one namespace, and TLS
// for one bundle, so neither may use a connection that was dialed for another one.
type poolKey struct {
	namespace string
	caBundle  [sha256.Size]byte
}

// transports holds a limited number of connection pools.
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

// transportFor returns the pool of a namespace and caBundle. It creates a missing one, and closes the least recently
// used one if there are too many.
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
			return nil, fmt.Errorf("parse CA bundle: %w", err)
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

// rootsOf returns the authorities of a caBundle, which replace the public ones as everywhere in Kubernetes: a receiver
// with a private authority must not accept any other. Without a bundle it returns nil, the system's authorities.
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
		// Custom dialers disable HTTP/2 unless this is set.
		ForceAttemptHTTP2: true,
		HTTP2:             &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return t.dialTarget(ctx, network, address, namespace, true)
		},
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := t.dialTarget(ctx, network, address, namespace, false)
			if err != nil {
				return nil, fmt.Errorf("connect for TLS: %w", err)
			}
			return handshakeTLS(ctx, conn, address, config)
		},
		// A small gzip body could expand to a large one in memory.
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
		MaxConnsPerHost:        MaxInFlight,
		MaxIdleConnsPerHost:    MaxInFlight,
		MaxIdleConns:           4 * MaxInFlight,
		IdleConnTimeout:        maxIdle,
	}
}

// dialTarget connects to an address that the guard allows. Plain http and https have a dialer each, so that the guard
// knows which one it checks.
func (t *transports) dialTarget(ctx context.Context, network, address, namespace string, plain bool) (net.Conn, error) {
	var tried atomic.Int32
	dialer := net.Dialer{
		Timeout:        maxDial,
		Resolver:       t.resolver,
		ControlContext: t.guard.dialControl(namespace, plain, &tried),
	}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("dial receiver: %w", err)
	}
	return conn, nil
}

// certificateAsked is the key of an *atomic.Bool in the context of an attempt, which is set if the connection that it dials asks for a
// client certificate.
type certificateAsked struct{}

// handshakeTLS makes a TLS connection of conn, or closes it. It marks handshake errors, which have no common type.
// After the handshake there is always a verified server certificate.
func handshakeTLS(ctx context.Context, conn net.Conn, address string, config *tls.Config) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		_ = conn.Close()
		return nil, handshakeError{err}
	}
	config = config.Clone()
	config.ServerName = host
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if asked, ok := ctx.Value(certificateAsked{}).(*atomic.Bool); ok {
			asked.Store(true)
		}
		return &tls.Certificate{}, nil // none is sent
	}
	ctx, cancel := context.WithTimeout(ctx, maxDial)
	defer cancel()
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, handshakeError{err}
	}
	if err := checkCertificate(secured.ConnectionState().PeerCertificates[0]); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("check server certificate: %w", err)
	}
	return secured, nil
}
