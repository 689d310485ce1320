package boundedhttp

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// testLimiter is a runLimiter with connections that have no network.
type testLimiter struct {
	*runLimiter

	inside atomic.Int64
}

func newTestLimiter(slots int) *testLimiter { return &testLimiter{runLimiter: newRunLimiter(slots)} }

// begin has a connection begin a request, which is inside when it may run.
func (l *testLimiter) begin(ctx context.Context, c *conn) {
	go func() {
		if l.acquireSlot(ctx, c) {
			l.inside.Add(1)
		}
	}()
	synctest.Wait()
}

// end ends a request, or its connection.
func (l *testLimiter) end(c *conn, s http.ConnState) {
	l.trackState(func(net.Conn, http.ConnState) {})(c, s)
	synctest.Wait()
}

func TestRunLimiter_letsTheNextIn(t *testing.T) {
	for name, end := range map[string]http.ConnState{"after an answer": http.StateIdle, "after the connection's end": http.StateClosed} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, w := newTestLimiter(2), NewWithT(t)
				conns := []*conn{{}, {}, {}}
				for _, c := range conns {
					l.begin(t.Context(), c)
				}
				w.Expect(l.inside.Load()).To(BeEquivalentTo(2))
				l.end(conns[0], end)
				w.Expect(l.inside.Load()).To(BeEquivalentTo(3))
				l.begin(t.Context(), conns[0])
				w.Expect(l.inside.Load()).To(BeEquivalentTo(3), "the first has to wait again")
				l.end(conns[1], end)
				w.Expect(l.inside.Load()).To(BeEquivalentTo(4))
				<-time.After(runTime) // no timer outlives the test
			})
		})
	}
}

// A request that waits for a store, or for news, must not keep the others out.
func TestRunLimiter_countsNoRequestThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, w := newTestLimiter(1), NewWithT(t)
		slow, next := &conn{}, &conn{}
		l.begin(t.Context(), slow)
		l.begin(t.Context(), next)
		w.Expect(l.inside.Load()).To(BeEquivalentTo(1))
		<-time.After(runTime)
		synctest.Wait()
		w.Expect(l.inside.Load()).To(BeEquivalentTo(2))
		l.end(slow, http.StateIdle)
		l.begin(t.Context(), slow)
		w.Expect(l.inside.Load()).To(BeEquivalentTo(2), "its slot was released once")
		l.end(next, http.StateIdle)
		w.Expect(l.inside.Load()).To(BeEquivalentTo(3))
		l.end(slow, http.StateClosed)
		l.end(slow, http.StateClosed)
		l.begin(t.Context(), next)
		w.Expect(l.inside.Load()).To(BeEquivalentTo(4))
		<-time.After(runTime)
	})
}

func TestRunLimiter_forgetsARequestWhoseClientHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, w := newTestLimiter(1), NewWithT(t)
		first, gone, last := &conn{}, &conn{}, &conn{}
		l.begin(t.Context(), first)
		ctx, leave := context.WithCancel(t.Context())
		l.begin(ctx, gone)
		l.begin(t.Context(), last)
		leave()
		l.end(gone, http.StateClosed)
		l.end(first, http.StateIdle)
		w.Expect(l.inside.Load()).To(BeEquivalentTo(2), "the first and the last")
		<-time.After(runTime)
	})
}

// limitedServer is a server whose only slot is taken for as long as a test likes.
type limitedServer struct {
	*WithT

	address string
	server  *http.Server
	pool    *pool
	began   atomic.Int64
	served  atomic.Int64
	limiter *runLimiter
}

func newLimitedServer(t *testing.T, budget int64) *limitedServer {
	t.Helper()
	s := &limitedServer{WithT: NewWithT(t), limiter: newRunLimiter(1)}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	s.Expect(err).NotTo(HaveOccurred())
	s.address = listener.Addr().String()
	server, bounded := NewServer(Options{
		Listener: listener, Budget: budget, ReadHeader: time.Minute, Read: time.Minute, Write: time.Minute, Idle: time.Minute,
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			s.began.Add(1)
			_, _ = io.Copy(io.Discard, r.Body)
			s.served.Add(1)
		}),
	})
	server.ConnState, server.Handler = s.limiter.trackState(server.ConnState), s.limiter.limitHandler(server.Handler)
	s.server, s.pool = server, bounded.pool
	go func() { _ = server.Serve(bounded) }() // ends with Close
	t.Cleanup(func() { s.Expect(server.Close()).To(Succeed()) })
	return s
}

// takeSlot takes the slot until it is released.
func (s *limitedServer) takeSlot() (release func()) {
	s.limiter.slots <- struct{}{}
	return func() { <-s.limiter.slots }
}

// send sends a text on a connection of its own.
func (s *limitedServer) send(t *testing.T, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.address)
	s.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = c.Close() })
	s.Expect(c.SetDeadline(time.Now().Add(time.Minute))).To(Succeed())
	_, err = io.WriteString(c, text)
	s.Expect(err).NotTo(HaveOccurred())
	return c
}

// readStatus returns the first line of the answer; empty without one.
func readStatus(c net.Conn) string {
	answer := make([]byte, len("HTTP/1.1 200 OK"))
	if _, err := io.ReadFull(c, answer); err != nil {
		return ""
	}
	return string(answer)
}

const plainRequest = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

// waiting returns how many connections have a request that waits for a slot, or runs.
func (p *pool) waitingForSlot() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open - p.waiting.Len()
}

func TestRunLimiter_keepsARequestThatWaitsWhenConnectionsAreTooMany(t *testing.T) {
	s := newLimitedServer(t, MinConnections*ConnectionCost)
	release := s.takeSlot()
	first := s.send(t, plainRequest)
	s.Eventually(s.pool.waitingForSlot).Should(Equal(1))
	for range 3 * MinConnections {
		s.send(t, "GET / HTTP/1.1\r\n") // a stranger's
	}
	s.Eventually(func() float64 { return testutil.ToFloat64(s.pool.evicted) }).Should(BeNumerically(">", MinConnections))
	release()
	s.Expect(readStatus(first)).To(Equal("HTTP/1.1 200 OK"))
}

func TestRunLimiter_letsShutdownWaitForARequestThatWaits(t *testing.T) {
	s := newLimitedServer(t, 0)
	release := s.takeSlot()
	waits := s.send(t, plainRequest)
	s.Eventually(s.pool.waitingForSlot).Should(Equal(1))
	ended := make(chan error, 1)
	go func() { ended <- s.server.Shutdown(t.Context()) }()
	s.Consistently(ended, 50*time.Millisecond).ShouldNot(Receive())
	release()
	s.Expect(readStatus(waits)).To(Equal("HTTP/1.1 200 OK"))
	s.Eventually(ended).Should(Receive(Succeed()))
}

// A client that sends a body slowly needs a slot for no moment that it makes others wait.
func TestRunLimiter_needsNoSlotForASlowBody(t *testing.T) {
	s := newLimitedServer(t, 0)
	s.limiter.runTime = time.Hour // so that no slot is released by time
	for range 50 {
		s.send(t, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na")
	}
	s.Eventually(s.began.Load).Should(BeEquivalentTo(50))
	s.Eventually(func() int { return len(s.limiter.slots) }).Should(BeZero())
	s.Expect(readStatus(s.send(t, plainRequest))).To(Equal("HTTP/1.1 200 OK"))
	whole := s.send(t, "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 100000\r\n\r\n"+strings.Repeat("b", 100_000))
	s.Expect(readStatus(whole)).To(Equal("HTTP/1.1 200 OK"))
	s.Expect(s.served.Load()).To(BeEquivalentTo(2))
}

// net/http half-closes a connection whose body it does not read to the end, so that the client can read the answer: a limiter must not
// hide that body from it.
func TestRunLimiter_leavesTheAnswerToALargeUnreadBody(t *testing.T) {
	s := newLimitedServer(t, 0)
	s.server.Handler = s.limiter.limitHandler(withBodyLength(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	})))
	for range 20 {
		c := s.send(t, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\n")
		_, _ = io.WriteString(c, strings.Repeat("b", 1<<20)) // the server may have closed it
		s.Expect(readStatus(c)).To(Equal("HTTP/1.1 401 Un"))
	}
}
