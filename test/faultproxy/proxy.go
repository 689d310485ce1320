// Package faultproxy is a TCP line that breaks on request: between a client and a server that both work, it delays,
// throttles, swallows, and resets connections at the worst moment, after a request was sent on and before its answer came
// back.
//
// The invariant: it never changes a byte. What arrives, arrives in order and as it was sent, or the connection ends.
package faultproxy

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/phoneproof/phoneproof/test/tcpline"
)

// Weather is how the line is at the moment. Its zero value is a line that works.
type Weather struct {
	// Delay is how much later everything arrives, in each direction.
	Delay time.Duration
	// BytesPerSecond is what a connection carries in each direction; zero is all there is.
	BytesPerSecond int
	// Hole says that nothing gets through and nothing fails, until the weather changes.
	Hole bool
	// Down says that connections end at once.
	Down bool
}

// Proxy is a line to a server.
type Proxy struct {
	// Address is where the line begins, as host:port on loopback.
	Address string

	line *tcpline.Line

	mu      sync.Mutex
	weather Weather
	changed chan struct{} // closed when the weather changes
	cut     *cut
	broken  int
	cuts    []string
	callers map[string]string
}

// cut is an order to break what follows a request. Proxy.mu guards it.
type cut struct {
	left  int
	match func([]byte) bool
}

// Listen returns a line to target, host:port. identify names the owner of a client's connection; nil names nobody. The caller
// must Close it.
func Listen(ctx context.Context, target string, identify func(client net.Conn) string) (*Proxy, error) {
	p := &Proxy{changed: make(chan struct{}), cut: &cut{}, callers: map[string]string{}}
	line, err := tcpline.Listen(ctx, target, p.carry, identify)
	if err != nil {
		return nil, err
	}
	p.Address, p.line = line.Address, line
	return p, nil
}

// Set changes the weather. Who is in a hole, or waits, goes on by the new one.
func (p *Proxy) Set(w Weather) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.weather = w
	close(p.changed)
	p.changed = make(chan struct{})
	if w.Down {
		p.broken += p.line.Reset()
	}
}

// CutAnswers has the next n requests that match reach the server, and their connections reset when the answers come,
// before a byte of them is passed on. A request is what a client sends at once; nil matches everything. Nothing is reset any
// more because of the call before.
func (p *Proxy) CutAnswers(n int, match func([]byte) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = &cut{left: n, match: match}
}

// Broken is how many connections the line has reset so far.
func (p *Proxy) Broken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken
}

// Cuts are the owners of the connections that CutAnswers has reset so far, in order.
func (p *Proxy) Cuts() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.cuts)
}

// Caller returns the owner of the connection that the server sees coming from an address, also when it has ended.
func (p *Proxy) Caller(address string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.callers[address]
}

// Open is how many connections there are.
func (p *Proxy) Open() int { return p.line.Open() }

// doom has the next answer of a connection be lost if the request wants that, once for all requests before it.
func (p *Proxy) doom(c *conn, request []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut.left == 0 || c.doomed.Load() == p.cut || p.cut.match != nil && !p.cut.match(request) {
		return
	}
	p.cut.left--
	c.doomed.Store(p.cut)
}

// loseAnswer resets a connection whose answer is to be lost, if that is so still, and reports whether it did.
func (p *Proxy) loseAnswer(c *conn) bool {
	by := c.doomed.Swap(nil)
	if by == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if by != p.cut {
		return false
	}
	p.broken++
	p.cuts = append(p.cuts, c.Owner)
	c.Reset()
	return true
}

// spare has another answer be lost in place of one that never came.
func (p *Proxy) spare(c *conn) {
	if by := c.doomed.Swap(nil); by != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		by.left++
	}
}

func (p *Proxy) now() (Weather, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.weather, p.changed
}

// meet notes who a connection is from, and reports whether the line is up.
func (p *Proxy) meet(pair *tcpline.Pair) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.callers[pair.Server.LocalAddr().String()] = pair.Owner
	return !p.weather.Down
}

// Close ends the line and all that goes over it.
func (p *Proxy) Close() error { return p.line.Close() }
