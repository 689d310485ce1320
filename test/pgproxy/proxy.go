// Package pgproxy is a proxy of a PostgreSQL server that understands the protocol. It can cut a connection after the
// statements of a transaction ran and before their commit reaches the server, or after the server has committed and before
// its answer reaches the client. It counts the commits that the server itself refuses.
//
// The invariant: it changes no byte. If it cuts a transaction before its commit, the server has run every statement that the
// client sent before, and never reads the commit: the COMMIT itself, or the Sync that ends an implicit transaction. If it cuts
// a transaction after its commit, the server has confirmed the commit, and the client has not received the confirmation.
package pgproxy

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/phoneproof/phoneproof/test/tcpline"
)

// Proxy is a proxy of a server.
type Proxy struct {
	// Address is where the proxy listens, as host:port on loopback.
	Address string

	line     *tcpline.Line
	classify func(statement string) string
	identify func(address string) string

	stop atomic.Pointer[Stop]

	mu sync.Mutex
	// The orders in force for commits; nil if there is none.
	cutting, losing, noting *order
	// The outcomes of commits.
	cut, lost, refused tcpline.Hits
}

// order is a fault that commits meet until it is withdrawn.
type order struct {
	every   int            // one in every commits is cut
	each    int            // this many commits of each operation lose their answers
	message string         // of the error with which a commit is refused
	chosen  map[string]int // by operation
	// open counts the commits that the order still has to handle. It is incremented with Proxy.mu held, and only while the order
	// is in force.
	open sync.WaitGroup
}

// Listen returns a proxy of target, host:port. classify names the operation that a statement belongs to; transactions whose
// statements have no operation are left alone. identify names the client at an address, for the hits; if it is nil, the address
// is used. The caller must Close the proxy.
func Listen(
	ctx context.Context, target string, classify func(statement string) (operation string), identify func(address string) string,
) (*Proxy, error) {
	if identify == nil {
		identify = func(address string) string { return address }
	}
	p := &Proxy{classify: classify, identify: identify}
	line, err := tcpline.Listen(ctx, target, p.carryConnection, nil)
	if err != nil {
		return nil, err
	}
	p.Address, p.line = line.Address, line
	return p, nil
}

// CutCommits cuts the connection of one in every transactions of each operation before its commit; 0 cuts none. It returns
// when the previous order affects no commit any more.
func (p *Proxy) CutCommits(every int) {
	var o *order
	if every > 0 {
		o = &order{every: every, chosen: map[string]int{}}
	}
	p.replaceOrder(&p.cutting, o)
}

// LoseAnswers cuts the connection of the next each transactions of each operation after the server has confirmed the commit and
// before the client receives it; 0 cuts none. It returns when the previous order affects no commit any more.
func (p *Proxy) LoseAnswers(each int) {
	var o *order
	if each > 0 {
		o = &order{each: each, chosen: map[string]int{}}
	}
	p.replaceOrder(&p.losing, o)
}

// NoteRefusals counts the commits that the server refuses with this message; none if it is empty. It returns when every commit
// that was sent under the previous order is answered.
func (p *Proxy) NoteRefusals(message string) {
	var o *order
	if message != "" {
		o = &order{message: message}
	}
	p.replaceOrder(&p.noting, o)
}

// replaceOrder replaces an order, and returns when the previous one has nothing left to do.
func (p *Proxy) replaceOrder(place **order, o *order) {
	p.mu.Lock()
	before := *place
	*place = o
	p.mu.Unlock()
	if before != nil {
		before.open.Wait()
	}
}

// Cut returns how many transactions were cut before their commit so far, by operation.
func (p *Proxy) Cut() tcpline.Hits {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cut
}

// Lost returns how many transactions were committed and lost their answer so far, by operation.
func (p *Proxy) Lost() tcpline.Hits {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// Refused returns how many commits the server refused so far while NoteRefusals was in force, by operation.
func (p *Proxy) Refused() tcpline.Hits {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

// countHit counts a transaction of a client's connection.
func (p *Proxy) countHit(hits *tcpline.Hits, operation string, pair *tcpline.Pair) {
	client := p.identify(pair.Client.RemoteAddr().String()) // now: the next client may have the same address
	p.mu.Lock()
	defer p.mu.Unlock()
	*hits = hits.Count(operation, client)
}

// chooseCut counts a transaction that is about to commit, and returns the order to cut it; nil if there is none. The caller
// must call open.Done on it.
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

// chooseLoss returns the order to lose the answer of a commit; nil if there is none.
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

// giveBack lets another commit lose its answer instead of one that had no answer to lose.
func (p *Proxy) giveBack(o *order, operation string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o.chosen[operation]--
}

// chooseNote returns the order to count the refusal of a commit; nil if there is none.
func (p *Proxy) chooseNote() *order {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.noting != nil {
		p.noting.open.Add(1)
	}
	return p.noting
}

// Close ends the proxy and all its connections.
func (p *Proxy) Close() error { return p.line.Close() }
