package webhook

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// patience is the timeout of attempts that should time out.
const patience = 200 * time.Millisecond

// testDestination has a timeout that is too long to be reached.
func testDestination(url string) destination {
	return destination{namespace: "shop", url: url, current: fakeSecret{}, previous: fakeSecret{}, timeout: time.Minute}
}

func impatientDestination(url string) destination {
	e := testDestination(url)
	e.timeout = patience
	return e
}

// newSender returns a sender that may call loopback addresses, unless the options include a guard.
func newSender(t testing.TB, o Options) *Sender {
	t.Helper()
	if o.Guard == nil {
		o.Guard = NewDevGuard(GuardConfig{})
	}
	s := NewSender(o)
	t.Cleanup(s.Close)
	return s
}

// sendEvent sends an event and requires that it was an attempt.
func sendEvent(t testing.TB, s *Sender, to destination) Result {
	t.Helper()
	result, err := s.Send(t.Context(), newEndpoint(to), testEvent())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return result
}

// received is a request that a receiver got.
type received struct {
	header http.Header
	body   []byte
}

// newReceiver starts a server that answers each request with a status and records the request.
func newReceiver(t testing.TB, status int) (*httptest.Server, <-chan received) {
	t.Helper()
	got := make(chan received, 64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		select {
		case got <- received{header: r.Header, body: body}:
		default: // no test reads it
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	return server, got
}

// serveRaw starts a server below HTTP, whose handle gets each connection after the request was read. It returns the
// server's URL.
func serveRaw(t testing.TB, handle func(conn *net.TCPConn)) string {
	t.Helper()
	listener := listenOn(t, "127.0.0.1:0")
	go acceptAll(listener, func(conn net.Conn) {
		if readRequest(conn) == nil {
			handle(conn.(*net.TCPConn))
		}
	})
	return "http://" + listener.Addr().String()
}

// readRequest reads a request's header and body.
func readRequest(conn net.Conn) error {
	var got strings.Builder
	buf := make([]byte, 4096)
	for !strings.HasSuffix(got.String(), "}") {
		n, err := conn.Read(buf)
		if err != nil {
			return err
		}
		got.Write(buf[:n])
	}
	return nil
}

func listenOn(t testing.TB, address string) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// acceptAll handles each connection and then closes it, until the listener is closed.
func acceptAll(listener net.Listener, handle func(net.Conn)) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = conn.Close() }()
			handle(conn)
		}()
	}
}

// canary is a listener that must get no connection.
type canary struct {
	listener net.Listener
	accepted chan string
	hits     atomic.Int64
}

// newCanary listens on every address of this machine.
func newCanary(t testing.TB, address string) *canary {
	t.Helper()
	c := &canary{listener: listenOn(t, address), accepted: make(chan string, 1024)}
	go func() {
		for {
			conn, err := c.listener.Accept()
			if err != nil {
				return
			}
			c.hits.Add(1)
			c.accepted <- conn.RemoteAddr().String()
			_ = conn.Close()
		}
	}()
	return c
}

func (c *canary) listenPort() string {
	_, port, _ := net.SplitHostPort(c.listener.Addr().String())
	return port
}

// countConnections returns how many connections there were. Connections are accepted in order, so once one of our own
// is accepted, all before it are counted.
func (c *canary) countConnections(t testing.TB) int64 {
	t.Helper()
	g := NewWithT(t)
	host, _, _ := net.SplitHostPort(c.listener.Addr().String())
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	conn, err := net.Dial("tcp", net.JoinHostPort(host, c.listenPort()))
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = conn.Close() }()
	g.Eventually(c.accepted, 30*time.Second).Should(Receive(Equal(conn.LocalAddr().String())))
	return c.hits.Add(-1)
}
