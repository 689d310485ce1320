// Package pgproxy is a line to a PostgreSQL server that understands the protocol: it can cut a connection when the
// statements of a transaction are done and their commit has not reached the server.
//
// The invariant: it changes no byte. Of a transaction that it cuts the server has run every statement that the client sent
// before the commit, and never reads the commit: the COMMIT itself, or the Sync that ends an implicit transaction.
package pgproxy

import (
	"context"
	"maps"
	"sync"

	"github.com/phoneproof/phoneproof/test/tcpline"
)

// Proxy is a line to a server.
type Proxy struct {
	// Address is where the line begins, as host:port on loopback.
	Address string

	line     *tcpline.Line
	classify func(statement string) string

	mu    sync.Mutex
	every int
	seen  map[string]int
	cut   map[string]int
}

// Listen returns a line to target, host:port. classify names the operation that a statement belongs to; transactions of
// statements without a name are left alone. The caller must Close it.
func Listen(ctx context.Context, target string, classify func(statement string) (operation string)) (*Proxy, error) {
	p := &Proxy{classify: classify, seen: map[string]int{}, cut: map[string]int{}}
	line, err := tcpline.Listen(ctx, target, p.carry, nil)
	if err != nil {
		return nil, err
	}
	p.Address, p.line = line.Address, line
	return p, nil
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

// Close ends the line and all connections over it.
func (p *Proxy) Close() error { return p.line.Close() }
