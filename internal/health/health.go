// Package health serves probes and metrics on a separate port: /livez, /readyz, /metrics, and /problems, which lists secrets
// that cannot be used and the last rejected change of the project. Liveness depends on nothing outside the process, because a
// restart repairs no store.
package health

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/phoneproof/phoneproof/internal/boundedhttp"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// Options configures a Server.
type Options struct {
	// Check and Serving are those of ReadinessOptions.
	Check   func(context.Context) error
	Serving func() error
	// Problems returns the secrets that cannot be used; nil if the process has no secrets.
	Problems func() []settings.Problem
	// Refused returns why the current project is rejected and an older one is in use, or a nil error. A nil function never does.
	Refused func() error
	// Metrics provides the metrics of /metrics.
	Metrics prometheus.Gatherer
	// Guard wraps the handler to check requests first; nil for none.
	Guard func(http.Handler) http.Handler
	// Budget is the memory in bytes that connections may use; zero for boundedhttp.Budget.
	Budget int64
	Log    logr.Logger
}

// Server is a Runnable that serves until its context ends.
type Server struct {
	listener  net.Listener
	http      *http.Server
	readiness *Readiness
}

// New returns a server for the listener, which it closes at its end.
func New(listener net.Listener, o Options) *Server {
	readiness := NewReadiness(ReadinessOptions{Check: o.Check, Serving: o.Serving, Log: o.Log})
	mux := NewProbesHandler(readiness)
	mux.HandleFunc("GET /problems", o.serveProblems)
	mux.Handle("GET /metrics", NewMetricsHandler(o.Metrics))
	var handler http.Handler = mux
	if o.Guard != nil {
		handler = o.Guard(mux)
	}
	server, bounded := boundedhttp.NewServer(boundedhttp.Options{
		Handler: handler, Listener: listener, Budget: o.Budget,
		ReadHeader: headerTimeout, Read: requestTimeout, Write: requestTimeout, Idle: idleTimeout, Log: o.Log,
	})
	return &Server{listener: bounded, http: server, readiness: readiness}
}

// Start serves until ctx ends, so that probes are answered while requests drain. Clients that are still reading an answer then
// have a second.
func (s *Server) Start(ctx context.Context) error {
	checks, stopChecks := context.WithCancel(ctx)
	defer stopChecks()
	go func() { _ = s.readiness.Start(checks) }() // not awaited: a check that hangs must not delay the shutdown
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		s.shutdown(context.WithoutCancel(ctx))
	})
	err := s.http.Serve(s.listener)
	if !stop() {
		<-ended // Serve returns as soon as a shutdown begins
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve probes and metrics: %w", err)
	}
	return nil
}

func (s *Server) shutdown(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close() // disconnects clients that are still reading
	}
}

// problems is the JSON body of /problems.
type problems struct {
	// Project is why the last change of the project was rejected.
	Project  string    `json:"project,omitempty"`
	Problems []problem `json:"problems"`
}

// problem is the JSON form of a settings.Problem.
type problem struct {
	Field  string          `json:"field"`
	Secret string          `json:"secret"`
	Key    string          `json:"key"`
	Reason settings.Reason `json:"reason"`
}

func (o Options) serveProblems(w http.ResponseWriter, _ *http.Request) {
	body := problems{Problems: []problem{}}
	if o.Problems != nil {
		for _, p := range o.Problems() {
			body.Problems = append(body.Problems, problem{p.Field, p.Secret, p.Key, p.Reason})
		}
	}
	if o.Refused != nil {
		if err := o.Refused(); err != nil {
			body.Project = err.Error()
		}
	}
	w.Header().Set("Content-Type", "application/json")
	//nolint:errchkjson // the client may have disconnected
	_ = json.NewEncoder(w).Encode(body)
}
