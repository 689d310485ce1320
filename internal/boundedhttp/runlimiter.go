package boundedhttp

import (
	"net"
	"net/http"
	"time"
)

// runTime is how long a request counts as running. One that takes longer waits for something other than a processor: for its client,
// for a store, or for news. Requests that compute take a tenth of it.
const runTime = time.Millisecond

// runLimiter limits the requests of a listener that run at once, each from the end of its header to the end of its answer, so that a
// flood of them leaves processors to other listeners of the process. The others wait in the order in which they came.
type runLimiter struct{ slots chan struct{} }

// newRunLimiter returns a limiter with that many slots.
func newRunLimiter(slots int) *runLimiter { return &runLimiter{make(chan struct{}, slots)} }

// trackState returns a ConnState hook that calls next first. net/http calls it from the goroutine of the connection, which waits in it.
func (l *runLimiter) trackState(next func(net.Conn, http.ConnState)) func(net.Conn, http.ConnState) {
	return func(nc net.Conn, s http.ConnState) {
		next(nc, s)
		c, ok := nc.(*conn)
		if !ok {
			return
		}
		switch s {
		case http.StateNew:
		case http.StateActive:
			l.acquireSlot(c)
		case http.StateIdle, http.StateClosed, http.StateHijacked:
			l.releaseSlot(c)
		}
	}
}

// acquireSlot waits for a slot.
func (l *runLimiter) acquireSlot(c *conn) {
	l.slots <- struct{}{}
	if c.running == nil {
		c.running = time.AfterFunc(runTime, func() { <-l.slots })
		return
	}
	c.running.Reset(runTime)
}

// releaseSlot releases the slot, unless that was done after runTime.
func (l *runLimiter) releaseSlot(c *conn) {
	if c.running != nil && c.running.Stop() {
		<-l.slots
	}
}
