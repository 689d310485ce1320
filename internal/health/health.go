// Package health serves what a kubelet and Prometheus ask for, on a port of its own: /livez, /readyz, /metrics, and
// /problems, the secrets that cannot be used and the change of the project that was refused. Liveness never depends on
// anything outside the process: a restart repairs no store.
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

// Options say what a Server reports.
type Options struct {
	// Check and Serving are those of ReadinessOptions.
	Check   func(context.Context) error
	Serving func() error
	// Problems returns the secrets that cannot be used; nil where a process has none.
	Problems func() []settings.Problem
	// Refused returns why the project, as it is now, does not count, so that an older one does; nil if it does.
	Refused func() error
	// Metrics is what /metrics shows.
	Metrics prometheus.Gatherer
	// Guard returns what judges requests first; nil for nothing.
	Guard func(http.Handler) http.Handler
	// Budget is how many bytes the connections may make the process hold; zero for boundedhttp.Budget.
	Budget int64
	Log    logr.Logger
}

// Server is a Runnable that serves until its context ends.
type Server struct {
	listener  net.Listener
	http      *http.Server
	readiness *Readiness
}

// New returns a server on the listener, which it closes when it ends.
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

// Start serves until ctx ends. It is the last to go: probes are answered while requests drain, and a client that still reads
// an answer then has a second for it.
func (s *Server) Start(ctx context.Context) error {
	checks, stopChecks := context.WithCancel(ctx)
	defer stopChecks()
	go func() { _ = s.readiness.Start(checks) }() // not waited for: a check that does not end must hold nothing up
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		s.shutdown(context.WithoutCancel(ctx))
	})
	err := s.http.Serve(s.listener)
	if !stop() {
		<-ended // Serve returns when a shutdown begins
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
		_ = s.http.Close() // a client that still reads is cut off
	}
}

// problems is the JSON form of what is wrong with the settings.
type problems struct {
	// Project is why the last change of the project was refused.
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
	wrong := problems{Problems: []problem{}}
	if o.Problems != nil {
		for _, p := range o.Problems() {
			wrong.Problems = append(wrong.Problems, problem{p.Field, p.Secret, p.Key, p.Reason})
		}
	}
	if o.Refused != nil {
		if err := o.Refused(); err != nil {
			wrong.Project = err.Error()
		}
	}
	w.Header().Set("Content-Type", "application/json")
	//nolint:errchkjson // the reader may have gone
	_ = json.NewEncoder(w).Encode(wrong)
}
