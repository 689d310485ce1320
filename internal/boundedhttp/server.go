package boundedhttp

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
)

// Options configure NewServer.
type Options struct {
	// Handler answers the requests. Required.
	Handler http.Handler
	// Listener accepts the connections. Required.
	Listener net.Listener
	// TLS is nil for a server without TLS. HTTP/2 is not supported in either case.
	TLS *tls.Config
	// Budget is the memory that the connections may use, in bytes; zero for all of Budget().
	Budget int64
	// ReadHeader limits the time for a header, Read that for a header and its body, Write that from the end of the header to
	// the end of the answer, and Idle that between two requests.
	ReadHeader, Read, Write, Idle time.Duration
	// BaseContext is the parent of the contexts of requests; nil for none.
	BaseContext context.Context //nolint:containedctx // net/http gets it from a function
	// Log gets the messages of net/http.
	Log logr.Logger
}

// Listener accepts connections within a budget.
type Listener struct {
	net.Listener

	tls  *tls.Config
	pool *pool
}

// NewServer returns a server and the listener to pass to its Serve method.
func NewServer(o Options) (*http.Server, *Listener) {
	if o.Budget == 0 {
		o.Budget = Budget()
	}
	if o.BaseContext == nil {
		o.BaseContext = context.Background()
	}
	if err := boundBuffers(o.Listener); err != nil {
		o.Log.Error(err, "socket buffers keep the kernel's defaults")
	}
	l := &Listener{Listener: o.Listener, pool: newPool(o.Budget, o.TLS != nil)}
	if o.TLS != nil {
		l.tls = o.TLS.Clone()
		// One HTTP/2 connection carries any number of requests, begun and reset (CVE-2023-44487).
		l.tls.NextProtos = []string{"http/1.1"}
	}
	server := &http.Server{
		Handler:           withBodyLength(o.Handler),
		ReadHeaderTimeout: o.ReadHeader,
		ReadTimeout:       o.Read,
		WriteTimeout:      o.Write,
		IdleTimeout:       o.Idle,
		MaxHeaderBytes:    MaxHeaderBytes, // not reached: conn refuses such a header first
		ConnState:         l.pool.trackState,
		ConnContext:       withConn,
		BaseContext:       func(net.Listener) context.Context { return o.BaseContext },
		ErrorLog:          slog.NewLogLogger(logr.ToSlogHandler(o.Log), slog.LevelInfo),
		// Every request must reach the handler, because the count of the next header starts there.
		DisableGeneralOptionsHandler: true,
		Protocols:                    new(http.Protocols),
	}
	server.Protocols.SetHTTP1(true)
	return server, l
}

// withBodyLength passes the length of the body of each request to its connection.
func withBodyLength(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*conn); ok {
			c.beginBody(r.ContentLength)
			if r.ContentLength < 0 {
				w.Header().Set("Connection", "close")
				r.Body = &chunkedBody{ReadCloser: r.Body, conn: c}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// Accept returns the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	l.pool.awaitRoom()
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err //nolint:wrapcheck // net/http checks its type
	}
	return newConn(raw, l.tls, l.pool), nil
}

// Close stops accepting.
func (l *Listener) Close() error {
	l.pool.close()
	return l.Listener.Close() //nolint:wrapcheck // as Accept
}

// Open returns the number of open connections.
func (l *Listener) Open() int {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	return l.pool.open
}

// Register registers the metrics of the connections.
func (l *Listener) Register(r prometheus.Registerer) error {
	for _, collector := range []prometheus.Collector{l.pool.gauge, l.pool.evicted, l.pool.unserved} {
		if err := r.Register(collector); err != nil {
			return fmt.Errorf("register metrics of connections: %w", err)
		}
	}
	return nil
}
