package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// Line is a proxy of a server, with a port of its own, whose connections can be cut.
type Line struct {
	// Port is the line's own on 127.0.0.1.
	Port int

	listener net.Listener
	target   string
	done     sync.WaitGroup

	mu    sync.Mutex
	dead  bool
	conns map[net.Conn]bool
}

// NewLine returns a line to the server. The caller must Close it.
func (s *Server) NewLine(ctx context.Context) (*Line, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen on loopback: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it listens on tcp
	l := &Line{
		Port: port, listener: listener, target: fmt.Sprintf("127.0.0.1:%d", s.Port), conns: make(map[net.Conn]bool),
	}
	l.done.Go(l.acceptClients)
	return l, nil
}

// URI returns the URI of a database of the server through the line.
func (l *Line) URI(database string) string {
	return fmt.Sprintf("postgresql://postgres@127.0.0.1:%d/%s?sslmode=disable", l.Port, database)
}

func (l *Line) acceptClients() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.done.Go(func() { l.carryConnection(client) })
	}
}

func (l *Line) carryConnection(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", l.target) //nolint:noctx // it ends with the line
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	if !l.addConns(client, server) {
		return
	}
	defer l.removeConns(client, server)
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
		both.Go(func() {
			_, _ = io.Copy(pair[0], pair[1])
			_ = pair[0].Close()
		})
	}
	both.Wait()
}

func (l *Line) addConns(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return false
	}
	for _, c := range conns {
		l.conns[c] = true
	}
	return true
}

func (l *Line) removeConns(conns ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		delete(l.conns, c)
	}
}

// Cut closes every connection, and every new one until repair is called.
func (l *Line) Cut() (repair func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
	for c := range l.conns {
		_ = c.Close()
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.dead = false
	}
}

// Close ends the line.
func (l *Line) Close() error {
	err := l.listener.Close()
	l.Cut()
	l.done.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
