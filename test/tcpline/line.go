// Package tcpline is a TCP line from a port on loopback to a server. It opens and ends connections; what becomes of the bytes
// between is its user's.
package tcpline

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

const dialTimeout = 5 * time.Second

// Line is a line to a server.
type Line struct {
	// Address is where the line begins, as host:port on loopback.
	Address string

	target   string
	identify func(client net.Conn) string
	carry    func(*Pair)
	listener net.Listener
	done     sync.WaitGroup

	mu     sync.Mutex
	open   map[*Pair]bool
	closed bool
}

// Listen returns a line to target, host:port. carry passes on what both sides of a connection send, until it returns, which
// ends both; it must return when one of them has ended. identify names the owner of a client's connection before the server
// is called; nil names nobody. The caller must Close the line.
func Listen(ctx context.Context, target string, carry func(*Pair), identify func(client net.Conn) string) (*Line, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open a line to %s: %w", target, err)
	}
	if identify == nil {
		identify = func(net.Conn) string { return "" }
	}
	l := &Line{
		Address: listener.Addr().String(), target: target, carry: carry, identify: identify, listener: listener,
		open: map[*Pair]bool{},
	}
	l.done.Go(l.accept)
	return l, nil
}

func (l *Line) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.done.Go(func() { l.serve(client) })
	}
}

func (l *Line) serve(client net.Conn) {
	owner := l.identify(client)                                  // while it is there for sure
	server, err := net.DialTimeout("tcp", l.target, dialTimeout) //nolint:noctx // it ends with the line
	if err != nil {
		abort(client)
		return
	}
	p := &Pair{Client: client, Server: server, Owner: owner, ended: make(chan struct{})}
	p.end = sync.OnceFunc(func() { close(p.ended) })
	if !l.keep(p) {
		p.Reset()
		return
	}
	defer l.drop(p)
	defer p.Close()
	l.carry(p)
}

func (l *Line) keep(p *Pair) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.open[p] = true
	return true
}

func (l *Line) drop(p *Pair) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, p)
}

// Open returns how many connections there are.
func (l *Line) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// Reset resets all connections, and returns how many.
func (l *Line) Reset() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.open {
		p.Reset()
	}
	return len(l.open)
}

// Close ends the line and all connections over it.
func (l *Line) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.Reset()
	err := l.listener.Close()
	l.done.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Pair is a client's connection and the one to the server that goes with it.
type Pair struct {
	Client, Server net.Conn
	// Owner is whose connection it is; empty if nobody is known.
	Owner string

	ended chan struct{}
	end   func()
}

// Ended is closed when the pair has ended.
func (p *Pair) Ended() <-chan struct{} { return p.ended }

// Close ends both sides in order.
func (p *Pair) Close() {
	p.end()
	_ = p.Client.Close()
	_ = p.Server.Close()
}

// Reset ends both sides at once: the client sees a connection reset by its peer.
func (p *Pair) Reset() {
	p.end()
	abort(p.Client)
	abort(p.Server)
}

func abort(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}
