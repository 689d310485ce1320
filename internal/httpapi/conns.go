package httpapi

import (
	"container/list"
	"net"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// connections bounds the connections of a server. A plain cap would let whoever opens idle connections lock everybody
// out; here the connection that idles for longest makes room for a new one. To a client that is the end of an idle
// connection, which HTTP clients expect at any time.
type connections struct {
	most int

	mu   sync.Mutex
	open map[net.Conn]*list.Element // of idle; nil while a request is being read or answered
	idle *list.List                 // of net.Conn, the one idle for longest in front

	gauge   prometheus.GaugeFunc
	evicted prometheus.Counter
}

func newConnections(most int) *connections {
	c := &connections{most: most, open: make(map[net.Conn]*list.Element), idle: list.New()}
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
	return c
}

func (c *connections) register(r prometheus.Registerer) error {
	if err := r.Register(c.gauge); err != nil {
		return err
	}
	return r.Register(c.evicted)
}

// track is the server's ConnState hook.
func (c *connections) track(conn net.Conn, state http.ConnState) {
	if victim := c.change(conn, state); victim != nil {
		c.evicted.Inc()
		victim.Close() //nolint:errcheck // it is gone either way, and its own goroutine learns of it
	}
}

// change notes a state and returns the connection that must go for it, if any.
func (c *connections) change(conn net.Conn, state http.ConnState) (victim net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element := c.open[conn]; element != nil {
		c.idle.Remove(element)
	}
	switch state {
	case http.StateNew, http.StateIdle: // A new one is idle too, until its first byte comes.
		c.open[conn] = c.idle.PushBack(conn)
	case http.StateActive:
		c.open[conn] = nil
	default: // closed or hijacked
		delete(c.open, conn)
	}
	if state != http.StateNew || len(c.open) <= c.most {
		return nil
	}
	// The new one itself, last in the list, goes only where no other one is idle.
	victim = c.idle.Remove(c.idle.Front()).(net.Conn) //nolint:forcetypeassert // the list holds nothing else
	c.open[victim] = nil                              // It is no victim twice; its StateClosed removes it.
	return victim
}
