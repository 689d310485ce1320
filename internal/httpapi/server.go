package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/phoneproof/phoneproof/internal/boundedhttp"
)

// ServerOptions configure NewServer.
type ServerOptions struct {
	// Handler answers the requests: an API, or handlers around one. Required.
	Handler http.Handler
	// Listener accepts the connections; Start closes it. The caller opens it, so that an address in use is an error
	// before anything else starts. Required.
	Listener net.Listener
	// DrainDelay is how long the server still answers after it was stopped, so that load balancers notice the failing
	// readiness probe. Zero means 5 s, negative means none.
	DrainDelay time.Duration
	// ShutdownTimeout limits how long the requests in flight may take after that; zero means 15 s.
	ShutdownTimeout time.Duration
	// Budget is the memory that the connections may use, in bytes; zero for boundedhttp.Budget.
	Budget int64
	// Log gets the messages of net/http. Its zero value logs nothing.
	Log logr.Logger
	// Registerer gets the metrics; nil for none.
	Registerer prometheus.Registerer
}

// Server serves a handler over HTTP/1.1 with the limits of this package. It is a controller-runtime Runnable.
//
// When the context of Start ends, the server drains in these steps: Draining becomes true and the long polls end; for
// DrainDelay it still answers, on new connections too, and asks each client to close its connection; it stops accepting;
// it finishes the requests in flight. So no request that reached it is lost, unless it takes longer than ShutdownTimeout.
type Server struct {
	http            *http.Server
	listener        *boundedhttp.Listener
	drainDelay      time.Duration
	shutdownTimeout time.Duration

	drain    chan struct{}
	draining atomic.Bool
}

// NewServer returns a server that is not started.
func NewServer(o ServerOptions) (*Server, error) { return newServer(o, defaultLimits) }

func newServer(o ServerOptions, l limits) (*Server, error) {
	if o.Handler == nil || o.Listener == nil {
		return nil, errors.New("an HTTP server needs Handler and Listener")
	}
	s := &Server{drain: make(chan struct{}), drainDelay: o.DrainDelay, shutdownTimeout: o.ShutdownTimeout}
	if s.drainDelay == 0 {
		s.drainDelay = defaultDrainDelay
	}
	if s.shutdownTimeout == 0 {
		s.shutdownTimeout = defaultShutdownTimeout
	}
	s.http, s.listener = boundedhttp.NewServer(boundedhttp.Options{
		Handler: s.closeWhileDraining(o.Handler), Listener: o.Listener, Budget: o.Budget,
		ReadHeader: l.readHeader, Read: l.read, Write: l.write, Idle: l.idle,
		BaseContext: withDraining(context.Background(), s.drain), Log: o.Log,
	})
	if o.Registerer != nil {
		if err := s.listener.Register(o.Registerer); err != nil {
			return nil, fmt.Errorf("register metrics of the listener: %w", err)
		}
	}
	return s, nil
}

// closeWhileDraining closes each connection of a draining server after its next answer. Closing idle connections at once
// would lose requests that are just being sent.
func (s *Server) closeWhileDraining(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.draining.Load() {
			w.Header()["Connection"] = closed
		}
		next.ServeHTTP(w, r)
	})
}

// Start serves until ctx ends, then drains. It returns an error if serving failed, or if requests took longer than
// ShutdownTimeout.
func (s *Server) Start(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- s.http.Serve(s.listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve HTTP: %w", err)
	case <-ctx.Done():
	}
	s.draining.Store(true)
	close(s.drain)

	delay := time.NewTimer(s.drainDelay)
	defer delay.Stop()
	select {
	case err := <-ended:
		return fmt.Errorf("serve HTTP while draining: %w", err)
	case <-delay.C:
	}

	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.shutdownTimeout)
	defer cancel()
	err := s.http.Shutdown(bounded)
	if err != nil {
		err = errors.Join(fmt.Errorf("finish the requests in flight: %w", err), s.http.Close())
	}
	<-ended //nolint:errcheck // always ErrServerClosed here
	return err
}

// NeedLeaderElection returns false, so that controller-runtime starts the server on every replica.
func (s *Server) NeedLeaderElection() bool { return false }

// Draining reports whether the server is stopping. The readiness probe fails from then on.
func (s *Server) Draining() bool { return s.draining.Load() }
