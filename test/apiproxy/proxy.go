// Package apiproxy is a proxy between clients and a real API server. It forwards calls unchanged, with the clients' own tokens, notes those
// that the API server does not answer, and breaks the watches of one resource: informers receive events late or old states again.
// Its user may answer any call.
//
// The invariant: forwarded responses are those of the API server. Reads of the present (GET, LIST, a short watch) never return old states.
package apiproxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// Proxy is a proxy of an API server.
type Proxy struct {
	// Address is where it listens, as host:port on loopback.
	Address string
	// CA is the CA of its certificate, as PEM.
	CA []byte

	resource  string
	identify  func(address string) string
	server    *httptest.Server
	transport *http.Transport
	pass      *httputil.ReverseProxy
	answer    atomic.Pointer[func(w http.ResponseWriter, r *http.Request) bool]

	watches    watches
	unanswered unanswered
}

// Listen returns a proxy of the API server of config, which breaks only watches of the resource. identify names the client at an address;
// if it is nil, the address is used. The caller must Close the proxy.
func Listen(config *rest.Config, resource string, identify func(address string) string) (*Proxy, error) {
	target, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("parse API server's URL: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(config.CAData) {
		return nil, errors.New("read API server's CA: no certificate in the configuration")
	}
	if identify == nil {
		identify = func(address string) string { return address }
	}
	p := &Proxy{
		resource: resource, identify: identify, watches: newWatches(),
		transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true},
	}
	// Connections that end early are expected.
	quiet := slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	p.pass = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: target.Scheme, Host: target.Host})
			p.rewindWatch(r)
		},
		Transport: p.transport, FlushInterval: -1, ModifyResponse: p.wrapWatch, ErrorHandler: abortCall, ErrorLog: quiet,
	}
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(p.answerCall))
	p.server.EnableHTTP2 = true
	p.server.Config.ErrorLog = quiet
	p.server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, c)
	}
	p.server.StartTLS()
	p.Address = p.server.Listener.Addr().String()
	p.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	return p, nil
}

// Close ends the proxy and all connections to it.
func (p *Proxy) Close() {
	p.watches.endAll()
	p.server.CloseClientConnections()
	p.server.Close()
	p.transport.CloseIdleConnections()
}

type connKey struct{}

// abortCall ends a call that the API server did not answer: the client sees the end of the connection with all calls on it, as the proxy
// did. It does not return.
func abortCall(_ http.ResponseWriter, r *http.Request, _ error) {
	if r.Context().Err() == nil { // else the client is gone
		c, _ := r.Context().Value(connKey{}).(net.Conn)
		if encrypted, is := c.(*tls.Conn); is {
			c = encrypted.NetConn()
		}
		if tcp, is := c.(*net.TCPConn); is {
			_ = tcp.SetLinger(0)
			_ = tcp.Close()
		}
	}
	panic(http.ErrAbortHandler)
}
