// Package pgproxy is a line to a PostgreSQL server that understands the protocol: it can cut a connection when the
// statements of a transaction are done and their commit has not reached the server, or when the server has committed and its
// answer has not reached the client. It counts the commits that the server itself refuses.
//
// The invariant: it changes no byte. Of a transaction that it cuts before its commit the server has run every statement that
// the client sent before the commit, and never reads the commit: the COMMIT itself, or the Sync that ends an implicit
// transaction. Of one whose answer it loses the client never reads that it was committed.
package pgproxy

import (
	"context"
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
	lose  map[string]int // how many answers were to be lost, by operation
	most  int
	// What became of commits.
	cut, lost, refused tcpline.Hits
}

// Listen returns a line to target, host:port. classify names the operation that a statement belongs to; transactions of
// statements without a name are left alone. The caller must Close it.
func Listen(ctx context.Context, target string, classify func(statement string) (operation string)) (*Proxy, error) {
	p := &Proxy{classify: classify, seen: map[string]int{}, lose: map[string]int{}}
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

// LoseAnswers cuts the connections of the next n transactions of each operation when they are committed, and before that is
// answered; 0 cuts none.
func (p *Proxy) LoseAnswers(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.most = n
	clear(p.lose)
}

// Cut counts the transactions that were cut before their commit so far, by operation.
func (p *Proxy) Cut() tcpline.Hits {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cut
}

// Lost counts the transactions that were committed so far and whose answer was lost, by operation.
func (p *Proxy) Lost() tcpline.Hits {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// Refused counts the transactions so far whose every statement succeeded and whose commit did not, by operation.
func (p *Proxy) Refused() tcpline.Hits {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
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

// dooms counts a transaction that is about to commit, and reports whether its answer is to be lost.
func (p *Proxy) dooms(operation string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lose[operation] >= p.most {
		return false
	}
	p.lose[operation]++
	return true
}

// spare takes back that an answer is to be lost: there was no commit.
func (p *Proxy) spare(operation string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose[operation] = max(0, p.lose[operation]-1)
}

// count counts a transaction of a client's connection.
func (p *Proxy) count(hits *tcpline.Hits, operation string, pair *tcpline.Pair) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*hits = hits.Count(operation, pair.Client.RemoteAddr().String())
}

// Close ends the line and all connections over it.
func (p *Proxy) Close() error { return p.line.Close() }
