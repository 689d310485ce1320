package boundedhttp

import (
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

// testLimiter is a runLimiter with connections that have no network.
type testLimiter struct {
	track  func(net.Conn, http.ConnState)
	inside atomic.Int64
}

func newTestLimiter(running int) *testLimiter {
	return &testLimiter{track: newRunLimiter(running).trackState(func(net.Conn, http.ConnState) {})}
}

// begin has a connection begin a request, which is inside when it may run.
func (g *testLimiter) begin(c *conn) {
	go func() {
		g.track(c, http.StateActive)
		g.inside.Add(1)
	}()
	synctest.Wait()
}

func TestRunLimiter_letsTheNextIn(t *testing.T) {
	for name, end := range map[string]http.ConnState{"after an answer": http.StateIdle, "after the connection's end": http.StateClosed} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, w := newTestLimiter(2), NewWithT(t)
				conns := []*conn{{}, {}, {}}
				for _, c := range conns {
					g.track(c, http.StateNew)
					g.begin(c)
				}
				w.Expect(g.inside.Load()).To(BeEquivalentTo(2))
				g.track(conns[0], end)
				synctest.Wait()
				w.Expect(g.inside.Load()).To(BeEquivalentTo(3))
				g.begin(conns[0])
				w.Expect(g.inside.Load()).To(BeEquivalentTo(3), "the first has to wait again")
				g.track(conns[1], end)
				synctest.Wait()
				w.Expect(g.inside.Load()).To(BeEquivalentTo(4))
			})
		})
	}
}

// A client that sends a body slowly, or waits for news, must not keep the others out.
func TestRunLimiter_countsNoRequestThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, w := newTestLimiter(1), NewWithT(t)
		slow, next := &conn{}, &conn{}
		g.begin(slow)
		g.begin(next)
		w.Expect(g.inside.Load()).To(BeEquivalentTo(1))
		<-time.After(runTime)
		synctest.Wait()
		w.Expect(g.inside.Load()).To(BeEquivalentTo(2))
		g.track(slow, http.StateIdle)
		g.begin(slow)
		w.Expect(g.inside.Load()).To(BeEquivalentTo(2), "its slot was released once")
		g.track(next, http.StateIdle)
		synctest.Wait()
		w.Expect(g.inside.Load()).To(BeEquivalentTo(3))
		g.track(slow, http.StateClosed)
		g.track(slow, http.StateClosed)
		g.begin(next)
		w.Expect(g.inside.Load()).To(BeEquivalentTo(4))
		<-time.After(runTime) // no timer outlives the test
	})
}

func TestServer_withARunLimiterAnswersBesideSlowRequests(t *testing.T) {
	g := NewWithT(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	release := make(chan struct{})
	server, bounded := NewServer(Options{
		Listener: listener, MaxRunning: 1, ReadHeader: time.Minute, Read: time.Minute, Write: time.Minute, Idle: time.Minute,
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				<-release
			}
		}),
	})
	go func() { _ = server.Serve(bounded) }() // ends with Close
	t.Cleanup(func() { g.Expect(server.Close()).To(Succeed()) })
	slow := make(chan int, 8)
	get := func(path string) int {
		response, err := http.Get("http://" + listener.Addr().String() + path)
		if err != nil {
			return 0
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	for range cap(slow) {
		go func() { slow <- get("/slow") }()
	}
	for range 100 {
		g.Expect(get("/")).To(Equal(http.StatusOK))
	}
	close(release)
	for range cap(slow) {
		g.Expect(<-slow).To(Equal(http.StatusOK))
	}
}
