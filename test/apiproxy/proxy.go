// Package apiproxy is a proxy between clients and a real API server. It forwards calls unchanged, with the clients' own
// tokens, and breaks those about one resource: writes fail before or after they are stored or get a conflict, and informers
// receive events late or receive old states again.
//
// The invariant: forwarded responses are those of the API server, and its own responses are those of an API server, or of a
// load balancer before it, in that case. Reads of the present (GET, LIST, a short watch) never return old states.
package apiproxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/phoneproof/phoneproof/test/tcpline"
)

// Spoiling is a fault that writes meet.
type Spoiling int

// The faults that writes can meet.
const (
	Nothing Spoiling = iota
	// FailBefore answers 500 or 504, and does not forward the write.
	FailBefore
	// FailAfter answers 500, 503 or 504 after the API server has stored the write.
	FailAfter
	// CutBefore cuts the connection, and does not forward the write.
	CutBefore
	// CutAfter cuts the connection after the API server has stored the write.
	CutAfter
	// Conflict answers an update with 409, and does not forward it.
	Conflict
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

	mu      sync.Mutex
	order   *order // nil if writes meet no fault
	spoiled tcpline.Hits
	watches watches

	unanswered unanswered
}

// order is a fault that writes meet until it is withdrawn.
type order struct {
	how   Spoiling
	every int
	seen  map[string]int // by verb
	// open counts the writes that are being spoiled. It is incremented with Proxy.mu held, and only while the order is in force.
	open sync.WaitGroup
}

// Listen returns a proxy of the API server of config, which breaks only calls about the resource. identify names the client at
// an address, for the hits; if it is nil, the address is used. The caller must Close the proxy.
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
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(p.serveCall))
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

// Spoil makes one in every writes of each verb meet the fault, until the next call. It returns when the order of the previous
// call affects no write any more.
func (p *Proxy) Spoil(how Spoiling, every int) {
	var o *order
	if how != Nothing {
		o = &order{how: how, every: every, seen: map[string]int{}}
	}
	p.mu.Lock()
	before := p.order
	p.order = o
	p.mu.Unlock()
	if before != nil {
		before.open.Wait()
	}
}

// Spoiled returns how many writes were spoiled so far, by verb: create, update or delete.
func (p *Proxy) Spoiled() tcpline.Hits {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spoiled
}

// Close ends the proxy and all connections to it.
func (p *Proxy) Close() {
	p.watches.endAll()
	p.server.CloseClientConnections()
	p.server.Close()
	p.transport.CloseIdleConnections()
}

// chooseOrder counts a write, and returns the order that spoils it; nil if none does. The caller must call open.Done on it.
func (p *Proxy) chooseOrder(verb string) *order {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.order
	if o == nil || o.how == Conflict && verb != Update {
		return nil
	}
	o.seen[verb]++
	if o.seen[verb]%o.every != 0 {
		return nil
	}
	o.open.Add(1)
	return o
}

// countSpoiled counts a spoiled write, and returns how many of its verb were spoiled before.
func (p *Proxy) countSpoiled(verb string, r *http.Request) int {
	client := p.identify(r.RemoteAddr) // now: the next client may have the same address
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spoiled = p.spoiled.Count(verb, client)
	return p.spoiled.Of(verb) - 1
}

// serveCall forwards a call, or breaks it.
func (p *Proxy) serveCall(w http.ResponseWriter, r *http.Request) {
	verb := p.writeVerb(r)
	if verb == "" {
		p.forwardCall(w, r)
		return
	}
	o := p.chooseOrder(verb)
	if o == nil {
		p.forwardCall(w, r)
		return
	}
	defer o.open.Done()
	switch o.how {
	case FailBefore:
		failures[p.countSpoiled(verb, r)%len(failures)].writeTo(w)
	case CutBefore:
		p.countSpoiled(verb, r)
		cutConnection(r)
	case Conflict:
		p.countSpoiled(verb, r)
		conflict.writeTo(w)
	default:
		p.storeAndBreak(w, r, verb, o.how)
	}
}

// storeAndBreak forwards a write and breaks the response. A refusal is forwarded, because nothing was stored.
func (p *Proxy) storeAndBreak(w http.ResponseWriter, r *http.Request, verb string, how Spoiling) {
	answer := httptest.NewRecorder()
	p.pass.ServeHTTP(answer, r)
	if answer.Code >= http.StatusMultipleChoices {
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()) // the client may be gone
		return
	}
	before := p.countSpoiled(verb, r)
	if how == CutAfter {
		cutConnection(r)
	}
	losses[before%len(losses)].writeTo(w)
}

type connKey struct{}

// cutConnection resets the connection of the call, with all other calls on it. It does not return.
func cutConnection(r *http.Request) {
	c, _ := r.Context().Value(connKey{}).(net.Conn)
	if encrypted, is := c.(*tls.Conn); is {
		c = encrypted.NetConn()
	}
	if tcp, is := c.(*net.TCPConn); is {
		_ = tcp.SetLinger(0)
		_ = tcp.Close()
	}
	panic(http.ErrAbortHandler)
}

// abortCall ends a call that the API server did not answer: the client sees the end of the connection, like the proxy.
func abortCall(_ http.ResponseWriter, r *http.Request, _ error) {
	if r.Context().Err() != nil { // the client is gone
		panic(http.ErrAbortHandler)
	}
	cutConnection(r)
}
