// Package pgproxy is a line to a PostgreSQL server that understands the protocol: it can cut a connection when the
// statements of a transaction are done and their commit has not reached the server.
//
// The invariant: it changes no byte. Of a transaction that it cuts the server has run every statement that the client sent
// before the commit, and never reads the commit: the COMMIT itself, or the Sync that ends an implicit transaction.
package pgproxy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"sync"
)

// Proxy is a line to a server.
type Proxy struct {
	// Address is where the line begins, as host:port on loopback.
	Address string

	target   string
	classify func(statement string) string
	listener net.Listener
	done     sync.WaitGroup

	mu     sync.Mutex
	every  int
	seen   map[string]int
	cut    map[string]int
	conns  map[*conn]bool
	closed bool
}

// Listen returns a line to target, host:port. classify names the operation that a statement belongs to; transactions of
// statements without a name are left alone. The caller must Close it.
func Listen(ctx context.Context, target string, classify func(statement string) (operation string)) (*Proxy, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w", target, err)
	}
	p := &Proxy{
		Address: listener.Addr().String(), target: target, classify: classify, listener: listener,
		seen: map[string]int{}, cut: map[string]int{}, conns: map[*conn]bool{},
	}
	p.done.Go(p.accept)
	return p, nil
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.done.Go(func() { p.carry(client) })
	}
}

// CutCommits cuts the connection of one in so many transactions of each operation before its commit; 0 cuts none.
func (p *Proxy) CutCommits(every int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.every = every
	clear(p.seen)
}

// Cut returns how many transactions of each operation were cut so far.
func (p *Proxy) Cut() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.cut)
}

// choose counts a transaction that is about to commit, and reports whether it is to be cut.
func (p *Proxy) choose(operation string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.every == 0 {
		return false
	}
	p.seen[operation]++
	return p.seen[operation]%p.every == 0
}

func (p *Proxy) count(operation string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut[operation]++
}

func (p *Proxy) keep(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.conns[c] = true
	return true
}

func (p *Proxy) drop(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// Close ends the line and all connections over it.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	for c := range p.conns {
		c.reset()
	}
	p.mu.Unlock()
	err := p.listener.Close()
	p.done.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
