package boundedhttp

import (
	"container/list"
	"net"
	"net/http"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// state is what a connection waits for; see the table in the package's documentation.
type state int

const (
	awaiting state = iota + 1
	receiving
	working
	answering
	leaving
)

// seat is what the pool knows of a connection.
type seat struct {
	state state
	cost  int64
	extra []int64       // the parts of cost that end with the request
	place *list.Element // among those waiting; nil for one that works or leaves
	// unserved reports whether net/http read something that no handler has got.
	unserved bool
}

// pool is the connections of a listener, within a budget.
type pool struct {
	budget int64
	base   int64 // cost of each connection

	mu      sync.Mutex
	closed  bool
	open    int
	cost    int64      // of all open connections
	parting int64      // of those that leave
	waiting *list.List // of *conn, the one that has waited for longest in front
	parted  *sync.Cond

	gauge    prometheus.GaugeFunc
	evicted  prometheus.Counter
	unserved prometheus.Counter
}

func newPool(budget int64, secure bool) *pool {
	p := &pool{budget: budget, base: ConnectionCost, waiting: list.New()}
	if secure {
		p.base += tlsCost
	}
	p.parted = sync.NewCond(&p.mu)
	p.gauge = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "phoneproof_http_connections", Help: "Open connections of clients.",
	}, func() float64 {
		p.mu.Lock()
		defer p.mu.Unlock()
		return float64(p.open)
	})
	p.evicted = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "phoneproof_http_connections_evicted_total", Help: "Connections closed because there were too many.",
	})
	p.unserved = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "phoneproof_http_unserved_requests_total",
		Help: "Requests that ended before they had a route: no HTTP/1.1, headers too large, too slow or broken off.",
	})
	return p
}

// trackState is the server's ConnState hook. net/http calls a connection active when it has read the header of a request, or has
// failed to; until then it is new or idle, however slow its header is.
func (p *pool) trackState(nc net.Conn, s http.ConnState) {
	c, ok := nc.(*conn)
	if !ok {
		return
	}
	switch s {
	case http.StateNew:
		p.addConn(c)
	case http.StateActive:
		p.changeSeat(c, func() {
			c.seat.unserved = true
			p.queueConn(c, awaiting)
		})
	case http.StateIdle:
		p.changeSeat(c, func() {
			p.endCosts(c)
			p.queueConn(c, awaiting)
		})
	case http.StateClosed, http.StateHijacked:
		p.removeConn(c)
	}
}

// markUnserved notes a header that net/http does not get to see.
func (p *pool) markUnserved(c *conn) { p.changeSeat(c, func() { c.seat.unserved = true }) }

// beginHandler notes that the handler begins.
func (p *pool) beginHandler(c *conn, body bool) {
	p.changeSeat(c, func() {
		c.seat.unserved = false
		if body {
			p.queueConn(c, receiving)
		} else {
			p.unqueueConn(c)
		}
	})
}

// finishBody notes that the body came. An answer that began before it is still the client's to take.
func (p *pool) finishBody(c *conn) {
	p.changeSeat(c, func() {
		if c.seat.state == receiving {
			p.unqueueConn(c)
		}
	})
}

// beginAnswer notes that the client has an answer to take.
func (p *pool) beginAnswer(c *conn) {
	p.changeSeat(c, func() {
		if c.seat.state == receiving || c.seat.state == working {
			p.queueConn(c, answering)
		}
	})
}

// addCost adds a cost until the request ends, once.
func (p *pool) addCost(c *conn, cost int64) {
	p.changeSeat(c, func() {
		if slices.Contains(c.seat.extra, cost) {
			return
		}
		c.seat.extra = append(c.seat.extra, cost)
		c.seat.cost += cost
		p.cost += cost
	})
}

// changeSeat changes what is known of a connection that does not leave, then makes room.
func (p *pool) changeSeat(c *conn, change func()) {
	p.mu.Lock()
	if c.seat.state != leaving {
		change()
	}
	victims := p.makeRoom()
	p.mu.Unlock()
	p.closeConns(victims)
}

func (p *pool) addConn(c *conn) {
	p.mu.Lock()
	p.open++
	c.seat.cost = p.base
	p.cost += p.base
	p.queueConn(c, awaiting)
	victims := p.makeRoom()
	p.mu.Unlock()
	p.closeConns(victims)
}

// removeConn forgets a connection that net/http has let go of.
func (p *pool) removeConn(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.seat.unserved {
		p.unserved.Inc()
	}
	if c.seat.state == leaving {
		p.parting -= c.seat.cost
		p.parted.Broadcast()
	}
	p.unqueueConn(c)
	p.open--
	p.cost -= c.seat.cost
}

// makeRoom chooses connections to close until the others fit. A new one, last among those waiting, goes only if no other waits.
func (p *pool) makeRoom() []*conn {
	var victims []*conn
	for p.cost-p.parting > p.budget {
		front := p.waiting.Front()
		if front == nil {
			break
		}
		victim := front.Value.(*conn) //nolint:forcetypeassert // the list holds nothing else
		p.unqueueConn(victim)
		victim.seat.state = leaving
		p.parting += victim.seat.cost
		victims = append(victims, victim)
	}
	return victims
}

// closeConns closes connections. Their own goroutines learn of it.
func (p *pool) closeConns(victims []*conn) {
	for _, victim := range victims {
		p.evicted.Inc()
		victim.raw.Close() //nolint:errcheck // it is gone either way
	}
}

// queueConn puts a connection behind all that wait.
func (p *pool) queueConn(c *conn, s state) {
	p.unqueueConn(c)
	c.seat.state = s
	c.seat.place = p.waiting.PushBack(c)
}

// unqueueConn takes a connection out of those that wait.
func (p *pool) unqueueConn(c *conn) {
	c.seat.state = working
	if c.seat.place != nil {
		p.waiting.Remove(c.seat.place)
		c.seat.place = nil
	}
}

// endCosts ends the costs of a request.
func (p *pool) endCosts(c *conn) {
	p.cost -= c.seat.cost - p.base
	c.seat.cost, c.seat.extra = p.base, c.seat.extra[:0]
}

// awaitRoom returns when few connections leave. What is accepted faster than others let go of their memory would be held
// beside it.
func (p *pool) awaitRoom() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.parting > p.budget/4 && !p.closed {
		p.parted.Wait()
	}
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.parted.Broadcast()
}
