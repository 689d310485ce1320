package httpapi

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// connections bounds the connections of a server. A plain cap would let whoever opens connections and does nothing lock
// everybody out; here the one that has waited for its client for longest makes room for a new one. A connection waits
// until it has sent a whole request, body included, and again from the beginning of the answer on, which a client may be
// slow to take. In between the server is at work, and no connection is closed.
//
// So what can fill the server is work alone, which needs an API key: long polls, fewer than the connections, and calls
// of the store, which storeTimeout bounds. A flood of n new connections a second leaves each client the time most/n
// for sending its request. An idle connection that makes room is what HTTP clients expect at any time.
type connections struct {
	most int

	mu      sync.Mutex
	open    map[net.Conn]*connection
	waiting *list.List // of *connection, the one that waits for longest in front

	gauge    prometheus.GaugeFunc
	evicted  prometheus.Counter
	unserved prometheus.Counter
}

// connection is one that is open and was not told to make room.
type connection struct {
	net.Conn

	// place is its place among those waiting; nil while the server is at work.
	place *list.Element
	// unserved says that net/http read something that no handler has got.
	unserved bool
}

func newConnections(most int) *connections {
	c := &connections{most: most, open: make(map[net.Conn]*connection), waiting: list.New()}
	c.gauge = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "phoneproof_http_connections", Help: "Open connections of clients.",
	}, func() float64 {
		c.mu.Lock()
		defer c.mu.Unlock()
		return float64(len(c.open))
	})
	c.evicted = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "phoneproof_http_connections_evicted_total", Help: "Connections closed because there were too many.",
	})
	c.unserved = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "phoneproof_http_unserved_requests_total",
		Help: "Requests that ended before they had a route: no HTTP/1.1, headers too large, too slow or broken off.",
	})
	return c
}

func (c *connections) register(r prometheus.Registerer) error {
	for _, collector := range []prometheus.Collector{c.gauge, c.evicted, c.unserved} {
		if err := r.Register(collector); err != nil {
			return err
		}
	}
	return nil
}

// track is the server's ConnState hook.
func (c *connections) track(conn net.Conn, state http.ConnState) {
	if victim := c.change(conn, state); victim != nil {
		c.evicted.Inc()
		victim.Close() //nolint:errcheck // it is gone either way, and its own goroutine learns of it
	}
}

// change notes a state and returns the connection that must go for it, if any. net/http calls a connection active when
// it has read the headers of a request, or has failed to; until then it is new or idle, however slow its headers are.
func (c *connections) change(conn net.Conn, state http.ConnState) (victim net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state == http.StateNew {
		c.open[conn] = &connection{Conn: conn}
	}
	known := c.open[conn]
	if known == nil { // It made room already.
		return nil
	}
	switch state {
	case http.StateNew, http.StateIdle:
		c.wait(known)
	case http.StateActive:
		known.unserved = true
		c.wait(known)
	default: // closed or hijacked
		if known.unserved {
			c.unserved.Inc()
		}
		c.forget(known)
	}
	if state != http.StateNew || len(c.open) <= c.most {
		return nil
	}
	// The new one itself, last in the list, goes only where no other one waits.
	longest := c.waiting.Front().Value.(*connection) //nolint:forcetypeassert // the list holds nothing else
	c.forget(longest)
	return longest.Conn
}

// wait puts a connection behind all that wait.
func (c *connections) wait(known *connection) {
	c.work(known)
	known.place = c.waiting.PushBack(known)
}

// work takes a connection out of those that wait.
func (c *connections) work(known *connection) {
	if known.place != nil {
		c.waiting.Remove(known.place)
		known.place = nil
	}
}

func (c *connections) forget(known *connection) {
	c.work(known)
	delete(c.open, known.Conn)
}

// turn is how handlers tell whose turn it is on the connection of a request.
type turn struct {
	all  *connections
	conn net.Conn
}

// turnKey finds the turn in a request's context.
type turnKey struct{}

// context is the server's ConnContext hook.
func (c *connections) context(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, turnKey{}, turn{all: c, conn: conn})
}

// turnOf returns one that does nothing under a server that is not ours.
func turnOf(ctx context.Context) turn {
	t, _ := ctx.Value(turnKey{}).(turn)
	return t
}

// served says that a handler has got the request.
func (t turn) served() { t.change(func(known *connection) { known.unserved = false }) }

// ours says that the server has all that it needs of the request.
func (t turn) ours() { t.change(t.all.work) }

// theirs says that the client must take the answer.
func (t turn) theirs() { t.change(t.all.wait) }

func (t turn) change(change func(*connection)) {
	if t.all == nil {
		return
	}
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	if known := t.all.open[t.conn]; known != nil {
		change(known)
	}
}
