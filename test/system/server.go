package system

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// Server is a server on loopback that the replicas call: a client's backend, or a messenger's API.
type Server struct {
	// Address is its host:port.
	Address string

	server *http.Server
	done   sync.WaitGroup
	err    error // of serving; read it only after done
}

// Serve serves a handler. The caller must Close it.
func Serve(ctx context.Context, handler http.Handler) (*Server, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen on loopback: %w", err)
	}
	s := &Server{Address: listener.Addr().String(), server: &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}}
	s.done.Go(func() { s.err = s.server.Serve(listener) }) // ends with Close
	return s, nil
}

// Close ends the server and all connections to it.
func (s *Server) Close() error {
	err := s.server.Close()
	s.done.Wait()
	if !errors.Is(s.err, http.ErrServerClosed) {
		err = errors.Join(err, s.err)
	}
	return err
}
