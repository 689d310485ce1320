package boundedhttp

import (
	"container/list"
	"net"
	"net/http"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// state is the state of a connection; see the table in the package documentation.
type state int

const (
	awaiting state = iota + 1
	receiving
	working
	answering
	leaving
)

// seat is the state and the cost of a connection in its pool.
type seat struct {
	state state
	cost  int64
	extra []int64       // the parts of cost that are removed when the request ends
	place *list.Element // in pool.waiting; nil if working or leaving
	// unserved reports whether net/http has read something that was not passed to a handler.
	unserved bool
}

// pool holds the connections of a listener within a budget.
type pool struct {
	budget int64
	base   int64 // cost of each connection

	mu      sync.Mutex
	closed  bool
	open    int
	cost    int64      // of all open connections
	parting int64      // cost of the leaving connections
	waiting *list.List // of *conn; the one that has waited longest is in front
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

// trackState is the ConnState hook of the server. For net/http a connection is active when the header of a request was read
// or could not be read; before that it is new or idle, however slow its header is.
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

// markUnserved records a refused header, which net/http does not see.
func (p *pool) markUnserved(c *conn) { p.changeSeat(c, func() { c.seat.unserved = true }) }

// beginHandler records that the handler starts.
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

// finishBody records that the body was received. If the answer began before that, the state stays answering.
func (p *pool) finishBody(c *conn) {
	p.changeSeat(c, func() {
		if c.seat.state == receiving {
			p.unqueueConn(c)
		}
	})
}

// beginAnswer records that the client has an answer to read.
func (p *pool) beginAnswer(c *conn) {
	p.changeSeat(c, func() {
		if c.seat.state == receiving || c.seat.state == working {
			p.queueConn(c, answering)
		}
	})
}

// addCost adds a cost until the request ends. A cost that was already added is ignored.
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

// changeSeat changes the seat of a connection that is not leaving, then evicts connections that exceed the budget.
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

// removeConn removes a connection that net/http has released.
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

// makeRoom selects connections to evict until the others fit the budget. A new connection is last in the queue, so it is
// evicted only if no other one waits.
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

// closeConns closes evicted connections. Their own goroutines get a read or write error.
func (p *pool) closeConns(victims []*conn) {
	for _, victim := range victims {
		p.evicted.Inc()
		victim.raw.Close() //nolint:errcheck // it is unusable either way
	}
}

// queueConn puts a connection at the end of the queue of waiting connections.
func (p *pool) queueConn(c *conn, s state) {
	p.unqueueConn(c)
	c.seat.state = s
	c.seat.place = p.waiting.PushBack(c)
}

// unqueueConn removes a connection from the queue of waiting connections.
func (p *pool) unqueueConn(c *conn) {
	c.seat.state = working
	if c.seat.place != nil {
		p.waiting.Remove(c.seat.place)
		c.seat.place = nil
	}
}

// endCosts removes the costs of a request.
func (p *pool) endCosts(c *conn) {
	p.cost -= c.seat.cost - p.base
	c.seat.cost, c.seat.extra = p.base, c.seat.extra[:0]
}

// awaitRoom returns when the leaving connections use at most a quarter of the budget. Accepting faster than leaving ones
// release their memory would exceed the budget.
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
