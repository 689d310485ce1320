// Package pgproxy is a line to a PostgreSQL server that understands the protocol: it can cut a connection when the
// statements of a transaction are done and their commit has not reached the server, or when the server has committed and its
// answer has not reached the client. It counts the commits that the server itself refuses.
//
// The invariant: it changes no byte. Of a transaction that it cuts before its commit the server has run every statement that
// the client sent before, and never reads the commit: the COMMIT itself, or the Sync that ends an implicit transaction. Of a
// transaction that it cuts after its commit the server has said that it is committed, and the client has not heard of it.
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
	identify func(address string) string

	mu sync.Mutex
	// What is to happen to commits; nil if nothing is.
	cutting, losing, noting *order
	// What became of commits.
	cut, lost, refused tcpline.Hits
}

// order is what is to happen to commits, until it is withdrawn.
type order struct {
	every   int            // one in so many is cut
	each    int            // so many of each operation lose their answers
	message string         // of the error that a commit is refused with
	chosen  map[string]int // by operation
	// open counts the commits that the order has yet to do something about. It grows with Proxy.mu held, and only while the
	// order is in force.
	open sync.WaitGroup
}

// Listen returns a line to target, host:port. classify names the operation that a statement belongs to; transactions of
// statements without a name are left alone. identify names the client at an address, for the hits; nil leaves its address.
// The caller must Close the line.
func Listen(
	ctx context.Context, target string, classify func(statement string) (operation string), identify func(address string) string,
) (*Proxy, error) {
	if identify == nil {
		identify = func(address string) string { return address }
	}
	p := &Proxy{classify: classify, identify: identify}
	line, err := tcpline.Listen(ctx, target, p.carry, nil)
	if err != nil {
		return nil, err
	}
	p.Address, p.line = line.Address, line
	return p, nil
}

// CutCommits cuts the connection of one in so many transactions of each operation before its commit; 0 cuts none. It returns
// when nothing more happens by the order before.
func (p *Proxy) CutCommits(every int) {
	var o *order
	if every > 0 {
		o = &order{every: every, chosen: map[string]int{}}
	}
	p.replace(&p.cutting, o)
}

// LoseAnswers cuts the connection of the next so many transactions of each operation when the server has said that they are
// committed, and before the client hears of it; 0 cuts none. It returns when nothing more happens by the order before.
func (p *Proxy) LoseAnswers(each int) {
	var o *order
	if each > 0 {
		o = &order{each: each, chosen: map[string]int{}}
	}
	p.replace(&p.losing, o)
}

// NoteRefusals counts the commits that the server refuses with this message; none if it is empty. It returns when every commit
// that was sent under the order before is answered.
func (p *Proxy) NoteRefusals(message string) {
	var o *order
	if message != "" {
		o = &order{message: message}
	}
	p.replace(&p.noting, o)
}

// replace puts an order in the place of another one, and returns when that one has nothing left to do.
func (p *Proxy) replace(place **order, o *order) {
	p.mu.Lock()
	before := *place
	*place = o
	p.mu.Unlock()
	if before != nil {
		before.open.Wait()
	}
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

// Refused counts the commits so far that the server refused while that was to be noted, by operation.
func (p *Proxy) Refused() tcpline.Hits {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

// count counts a transaction of a client's connection.
func (p *Proxy) count(hits *tcpline.Hits, operation string, pair *tcpline.Pair) {
	client := p.identify(pair.Client.RemoteAddr().String()) // now: the next one may come from the same address
	p.mu.Lock()
	defer p.mu.Unlock()
	*hits = hits.Count(operation, client)
}

// chooseCut counts a transaction that is about to commit, and returns the order by which it is to be cut; nil if there is none.
// The caller must end what is open by it.
func (p *Proxy) chooseCut(operation string) *order {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.cutting
	if o == nil {
		return nil
	}
	o.chosen[operation]++
	if o.chosen[operation]%o.every != 0 {
		return nil
	}
	o.open.Add(1)
	return o
}

// chooseLoss returns the order by which the answer of a commit is to be lost; nil if there is none.
func (p *Proxy) chooseLoss(operation string) *order {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.losing
	if o == nil || o.chosen[operation] >= o.each {
		return nil
	}
	o.chosen[operation]++
	o.open.Add(1)
	return o
}

// giveBack has another commit lose its answer in place of one that had none to lose.
func (p *Proxy) giveBack(o *order, operation string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o.chosen[operation]--
}

// chooseNote returns the order by which the refusal of a commit is to be noted; nil if there is none.
func (p *Proxy) chooseNote() *order {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.noting != nil {
		p.noting.open.Add(1)
	}
	return p.noting
}

// Close ends the line and all connections over it.
func (p *Proxy) Close() error { return p.line.Close() }
