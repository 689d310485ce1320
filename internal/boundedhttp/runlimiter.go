package boundedhttp

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// runTime is how long a request counts as running. One that takes longer waits for something other than a processor, such as a store
// or news. Requests that compute take a tenth of it.
const runTime = time.Millisecond

// runLimiter limits the requests of a listener that run at once, each from before its handler to the end of its answer, so that a flood
// of them leaves processors to other listeners of the process. The others wait in the order in which they came. A request that waits
// for its body does not run.
type runLimiter struct {
	slots   chan struct{}
	runTime time.Duration
}

// newRunLimiter returns a limiter with that many slots.
func newRunLimiter(slots int) *runLimiter { return &runLimiter{make(chan struct{}, slots), runTime} }

// trackState returns a ConnState hook that calls next and releases the slot of a request that has ended.
func (l *runLimiter) trackState(next func(net.Conn, http.ConnState)) func(net.Conn, http.ConnState) {
	return func(nc net.Conn, s http.ConnState) {
		next(nc, s)
		if c, ok := nc.(*conn); ok && (s == http.StateIdle || s == http.StateClosed) {
			l.releaseSlot(c)
		}
	}
}

// limitHandler returns a handler that runs in a slot of its request's connection.
func (l *runLimiter) limitHandler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, ok := r.Context().Value(connKey{}).(*conn)
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		c.pool.beginHandler(c, false) // it has come whole, but for its body: it is not closed to make room while it waits
		if !l.acquireSlot(r.Context(), c) {
			c.pool.markUnserved(c)
			panic(http.ErrAbortHandler) // the client has gone
		}
		if r.ContentLength != 0 {
			limited := *r // net/http looks at the type of its own request's body
			limited.Body = &limitedBody{r.Body, l, c, r.Context()}
			r = &limited
		}
		next.ServeHTTP(w, r)
		if c.awaitsBody() {
			l.releaseSlot(c) // net/http reads the rest, as slowly as it comes
		}
	})
}

// acquireSlot waits for a slot, and reports whether it got one before ctx ended.
func (l *runLimiter) acquireSlot(ctx context.Context, c *conn) bool {
	select {
	case l.slots <- struct{}{}: // also for a client that has sent all that it wanted to
	default:
		select {
		case l.slots <- struct{}{}:
		case <-ctx.Done():
			return false
		}
	}
	if c.running == nil {
		c.running = time.AfterFunc(l.runTime, func() { <-l.slots })
	} else {
		c.running.Reset(l.runTime)
	}
	return true
}

// releaseSlot releases the slot, unless that was done before or after runTime.
func (l *runLimiter) releaseSlot(c *conn) {
	if c.running != nil && c.running.Stop() {
		<-l.slots
	}
}

// limitedBody is the body of a request that has a slot before it is read, and again when that has ended: what is in between waits for the
// client.
type limitedBody struct {
	io.ReadCloser

	limiter *runLimiter
	conn    *conn
	ctx     context.Context //nolint:containedctx // that of the request whose body it is
}

// Read reads without a slot. If the client goes while the request waits for one, the request goes on all the same.
func (b *limitedBody) Read(p []byte) (int, error) {
	b.limiter.releaseSlot(b.conn)
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		if errors.Is(err, io.EOF) {
			b.conn.pool.finishBody(b.conn) // it is not closed to make room while it waits
		}
		b.limiter.acquireSlot(b.ctx, b.conn)
	}
	return n, err
}
