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

// ServerOptions are what a Server is made of.
type ServerOptions struct {
	// Handler answers the requests: an API, or handlers around one. Required.
	Handler http.Handler
	// Listener is where requests come in; Start closes it. It is opened by the caller, so that an address that cannot
	// be had is an error before anything else starts. Required.
	Listener net.Listener
	// DrainDelay is how long the server still answers after it was told to stop, so that whoever sends it requests
	// learns from readiness that it ends. Zero means 5 s, negative means none.
	DrainDelay time.Duration
	// ShutdownTimeout bounds how long the requests in flight may take after that; zero means 15 s.
	ShutdownTimeout time.Duration
	// Budget is how many bytes the connections may make the process hold; zero for boundedhttp.Budget.
	Budget int64
	// Log gets what net/http has to say. Its zero value logs nothing.
	Log logr.Logger
	// Registerer gets the metrics; nil for none.
	Registerer prometheus.Registerer
}

// Server serves a handler over HTTP/1.1 with the limits of this package. It is a controller-runtime Runnable.
//
// When the context of Start ends it drains, in this order: Draining becomes true and the long polls end; it goes on
// answering for DrainDelay, new connections included, and asks each client to open its next connection elsewhere; it
// stops accepting; it finishes what it has accepted. So no request that reached it is lost, unless it takes longer than
// ShutdownTimeout.
type Server struct {
	http            *http.Server
	listener        *boundedhttp.Listener
	drainDelay      time.Duration
	shutdownTimeout time.Duration

	drain    chan struct{}
	draining atomic.Bool
}

// MaxWaits returns how many long polls a server with that budget may hold: they alone must not fill it.
func MaxWaits(budget int64) int {
	return int(min(maxWaits, budget/boundedhttp.ConnectionCost*15/16))
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
			return nil, err
		}
	}
	return s, nil
}

// closeWhileDraining has clients leave a draining server by and by. Closing their idle connections at once instead would cut
// those that are just sending a request.
func (s *Server) closeWhileDraining(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.draining.Load() {
			w.Header()["Connection"] = closed
		}
		next.ServeHTTP(w, r)
	})
}

// Start serves until ctx ends, then drains. It returns an error if serving ended by itself, or if requests were cut
// because they took too long.
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
	<-ended //nolint:errcheck // ErrServerClosed, as told
	return err
}

// NeedLeaderElection tells controller-runtime to start the server on every replica.
func (s *Server) NeedLeaderElection() bool { return false }

// Draining tells whether the server was told to stop. Readiness is off from then on.
func (s *Server) Draining() bool { return s.draining.Load() }
