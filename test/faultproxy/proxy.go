// Package faultproxy is a TCP proxy that injects faults between a client and a server that both work: it delays, throttles
// and swallows bytes, and resets connections at the worst moment, after a request was forwarded and before its answer
// came back.
//
// The invariant: it never changes a byte. Bytes arrive in order and as they were sent, or the connection ends.
package faultproxy

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/phoneproof/phoneproof/test/tcpline"
)

// Weather is the set of faults on the line at the moment. Its zero value is a line that works.
type Weather struct {
	// Delay is added to every transmission, in each direction.
	Delay time.Duration
	// BytesPerSecond limits each direction of a connection; zero is no limit.
	BytesPerSecond int
	// Hole makes the line swallow everything without an error, until the weather changes.
	Hole bool
}

// Proxy is a proxy of a server.
type Proxy struct {
	// Address is where the proxy listens, as host:port on loopback.
	Address string

	line *tcpline.Line

	mu      sync.Mutex
	weather Weather
	changed chan struct{} // closed when the weather changes
	cut     *cut
	cuts    []string
	callers map[string]string
}

// cut is an order to cut the answers to requests. Proxy.mu guards it.
type cut struct{ left int }

// Listen returns a proxy of target, host:port. identify names the owner of a client's connection; if it is nil, there are no
// owners. The caller must Close the proxy.
func Listen(ctx context.Context, target string, identify func(client net.Conn) string) (*Proxy, error) {
	p := &Proxy{changed: make(chan struct{}), cut: &cut{}, callers: map[string]string{}}
	line, err := tcpline.Listen(ctx, target, p.carryConnection, identify)
	if err != nil {
		return nil, err
	}
	p.Address, p.line = line.Address, line
	return p, nil
}

// Set changes the weather, also for bytes that are being delayed or swallowed.
func (p *Proxy) Set(w Weather) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.weather = w
	close(p.changed)
	p.changed = make(chan struct{})
}

// CutAnswers lets the next n requests reach the server, and resets their connections when the answers arrive, before a byte of them is
// forwarded. A request is what a client sends at once. The order of the previous call ends at once.
func (p *Proxy) CutAnswers(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = &cut{left: n}
}

// Cuts returns the owners of the connections that CutAnswers has reset so far, in order.
func (p *Proxy) Cuts() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.cuts)
}

// Caller returns the owner of the connection that the server accepted from an address, also after it has ended.
func (p *Proxy) Caller(address string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.callers[address]
}

// markForCut orders the next answer of a connection to be cut, once for all requests before that answer.
func (p *Proxy) markForCut(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut.left == 0 || c.doomed.Load() == p.cut {
		return
	}
	p.cut.left--
	c.doomed.Store(p.cut)
}

// loseAnswer resets a connection whose answer is to be cut, if the order is still in force, and reports whether it did.
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
	p.cuts = append(p.cuts, c.Owner)
	c.Reset()
	return true
}

// giveBack lets another answer be cut instead of one that never came.
func (p *Proxy) giveBack(c *conn) {
	if by := c.doomed.Swap(nil); by != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		by.left++
	}
}

func (p *Proxy) currentWeather() (Weather, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.weather, p.changed
}

// recordCaller records the owner of a connection.
func (p *Proxy) recordCaller(pair *tcpline.Pair) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.callers[pair.Server.LocalAddr().String()] = pair.Owner
}

// Close ends the proxy and all its connections.
func (p *Proxy) Close() error { return p.line.Close() }
