// Package apiproxy stands between clients and a real API server. It passes calls on as the clients make them, with their own
// tokens, and breaks those about one resource: writes fail before or after they are stored, or meet a conflict, and
// informers are late or hear of old states again.
//
// The invariant: what it passes on is what the API server said, and what it answers itself is what an API server, or a load
// balancer before it, answers in that case. Questions about the present (a GET, a LIST, a short watch) are never answered
// from the past.
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

// Spoiling is what happens to writes.
type Spoiling int

// What happens to writes.
const (
	Nothing Spoiling = iota
	// FailBefore answers 500 or 504, and the API server never hears of the write.
	FailBefore
	// FailAfter answers 500, 503 or 504 when the API server has stored the write.
	FailAfter
	// CutBefore cuts the connection, and the API server never hears of the write.
	CutBefore
	// CutAfter cuts the connection when the API server has stored the write.
	CutAfter
	// Conflict answers an update with 409, and the API server never hears of it.
	Conflict
)

// Proxy stands before an API server.
type Proxy struct {
	// Address is where it listens, as host:port on loopback.
	Address string
	// CA has the authority of its certificate, as PEM.
	CA []byte

	resource  string
	identify  func(address string) string
	server    *httptest.Server
	transport *http.Transport
	pass      *httputil.ReverseProxy

	mu       sync.Mutex
	order    *order // nil if nothing happens to writes
	spoiled  tcpline.Hits
	watching watching
}

// order is what is to happen to writes, until it is withdrawn.
type order struct {
	how   Spoiling
	every int
	seen  map[string]int // by verb
	// open counts the writes that it is happening to. It grows with Proxy.mu held, and only while the order is in force.
	open sync.WaitGroup
}

// Listen returns a proxy before the API server of config. It breaks calls about the resource alone. identify names the client
// at an address, for the hits; nil leaves its address. The caller must Close the proxy.
func Listen(config *rest.Config, resource string, identify func(address string) string) (*Proxy, error) {
	target, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("listen for the API server: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(config.CAData) {
		return nil, errors.New("listen for the API server: its authority is not known")
	}
	if identify == nil {
		identify = func(address string) string { return address }
	}
	p := &Proxy{
		resource: resource, identify: identify, watching: newWatching(),
		transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true},
	}
	// Connections that end early are what it is for.
	quiet := slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	p.pass = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: target.Scheme, Host: target.Host})
			p.rewind(r)
		},
		Transport: p.transport, FlushInterval: -1, ModifyResponse: p.wrap, ErrorHandler: fail, ErrorLog: quiet,
	}
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
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

// Spoil has one in so many writes of each verb meet with that, until the next call. It returns when nothing more happens by
// the call before.
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

// Spoiled counts the writes that were spoiled so far, by verb: create, update or delete.
func (p *Proxy) Spoiled() tcpline.Hits {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spoiled
}

// Close ends the proxy and all connections to it.
func (p *Proxy) Close() {
	p.watching.hangUp()
	p.server.CloseClientConnections()
	p.server.Close()
	p.transport.CloseIdleConnections()
}

// choose counts a write, and returns the order by which something happens to it; nil if nothing does. The caller must end what
// is open by it.
func (p *Proxy) choose(verb string) *order {
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

// count counts a write that was spoiled, and returns how many of its verb there were before.
func (p *Proxy) count(verb string, r *http.Request) int {
	client := p.identify(r.RemoteAddr) // now: the next one may come from the same address
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spoiled = p.spoiled.Count(verb, client)
	return p.spoiled.Of(verb) - 1
}

// serve passes a call on, or breaks it.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	verb := p.writes(r)
	if verb == "" {
		p.pass.ServeHTTP(w, r)
		return
	}
	o := p.choose(verb)
	if o == nil {
		p.pass.ServeHTTP(w, r)
		return
	}
	defer o.open.Done()
	switch o.how {
	case FailBefore:
		failures[p.count(verb, r)%len(failures)].write(w)
	case CutBefore:
		p.count(verb, r)
		cut(r)
	case Conflict:
		p.count(verb, r)
		conflict.write(w)
	default:
		p.store(w, r, verb, o.how)
	}
}

// store has the API server store a write and breaks its answer. What is refused is passed on: it was not stored.
func (p *Proxy) store(w http.ResponseWriter, r *http.Request, verb string, how Spoiling) {
	answer := httptest.NewRecorder()
	p.pass.ServeHTTP(answer, r)
	if answer.Code >= http.StatusMultipleChoices {
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()) // the client may have gone
		return
	}
	before := p.count(verb, r)
	if how == CutAfter {
		cut(r)
	}
	losses[before%len(losses)].write(w)
}

type connKey struct{}

// cut ends the connection that the call came by, with all other calls on it, as by a reset. It does not return.
func cut(r *http.Request) {
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

// fail ends a call that the API server did not answer: the client sees what the proxy saw, the end of the connection.
func fail(_ http.ResponseWriter, r *http.Request, _ error) {
	if r.Context().Err() != nil { // it is the client who has gone
		panic(http.ErrAbortHandler)
	}
	cut(r)
}
