// Package tcpline is the base of TCP proxies: it accepts clients on loopback and connects each to a server. Its user forwards
// the bytes.
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

// Line accepts clients, and connects each to the server.
type Line struct {
	// Address is where the line listens, as host:port on loopback.
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

// Listen returns a line to target, host:port. carry forwards the bytes of a pair of connections; when it returns, both end. It
// must return when one of them has ended. identify names the owner of a client's connection before the server is dialed; if it
// is nil, there are no owners. The caller must Close the line.
func Listen(ctx context.Context, target string, carry func(*Pair), identify func(client net.Conn) string) (*Line, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w", target, err)
	}
	if identify == nil {
		identify = func(net.Conn) string { return "" }
	}
	l := &Line{
		Address: listener.Addr().String(), target: target, carry: carry, identify: identify, listener: listener,
		open: map[*Pair]bool{},
	}
	l.done.Go(l.acceptClients)
	return l, nil
}

func (l *Line) acceptClients() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.done.Go(func() { l.serveClient(client) })
	}
}

func (l *Line) serveClient(client net.Conn) {
	owner := l.identify(client)                                  // while the connection is certainly open
	server, err := net.DialTimeout("tcp", l.target, dialTimeout) //nolint:noctx // it ends with the line
	if err != nil {
		resetConn(client)
		return
	}
	p := &Pair{Client: client, Server: server, Owner: owner, ended: make(chan struct{})}
	p.end = sync.OnceFunc(func() { close(p.ended) })
	if !l.addPair(p) {
		p.Reset()
		return
	}
	defer l.removePair(p)
	defer p.Close()
	l.carry(p)
}

func (l *Line) addPair(p *Pair) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.open[p] = true
	return true
}

func (l *Line) removePair(p *Pair) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, p)
}

// Close ends the line and all connections over it.
func (l *Line) Close() error {
	l.mu.Lock()
	l.closed = true
	for p := range l.open {
		p.Reset()
	}
	l.mu.Unlock()
	err := l.listener.Close()
	l.done.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Pair is a client's connection and its connection to the server.
type Pair struct {
	Client, Server net.Conn
	// Owner is the name of the client's owner; empty if it is unknown.
	Owner string

	ended chan struct{}
	end   func()
}

// Ended is closed when the pair has ended.
func (p *Pair) Ended() <-chan struct{} { return p.ended }

// Close closes both sides gracefully.
func (p *Pair) Close() {
	p.end()
	_ = p.Client.Close()
	_ = p.Server.Close()
}

// Reset ends both sides at once: the client sees "connection reset by peer".
func (p *Pair) Reset() {
	p.end()
	resetConn(p.Client)
	resetConn(p.Server)
}

func resetConn(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}
