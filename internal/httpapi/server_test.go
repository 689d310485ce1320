package httpapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/boundedhttp"
	"github.com/phoneproof/phoneproof/internal/settings"
)

func TestServer_drains(t *testing.T) {
	const drain = 10 * time.Second // the requests sent meanwhile take far less
	g := NewWithT(t)
	h := newHarness(t, func(s *setup) { s.server.DrainDelay = drain })
	id := h.do(initFor(keyAll, h.newNumber(0))).stringField("requestId")

	waiting := make(chan answer, 1)
	go func() { waiting <- h.do(statusRequest(keyAll, "id="+id+"&wait=30s")) }()
	g.Eventually(h.gatherMetrics).Should(ContainSubstring("phoneproof_http_long_polls 1\n"))
	g.Expect(h.server.Draining()).To(BeFalse())

	start := time.Now()
	stopped := make(chan error, 1)
	go func() { stopped <- h.stop() }()
	g.Expect((<-waiting).stringField("status")).To(Equal("PENDING"))
	g.Expect(time.Since(start)).To(BeNumerically("<", drain), "long polls must end at once")
	g.Expect(h.server.Draining()).To(BeTrue())
	a := h.do(initFor(keyAll, h.newNumber(1)))
	g.Expect(a.status).To(Equal(200), "a draining server still answers")
	a = h.do(statusRequest(keyAll, "id="+id+"&wait=30s"))
	g.Expect(a.stringField("status")).To(Equal("PENDING"))
	g.Expect(<-stopped).To(Succeed())
	g.Expect(time.Since(start)).To(BeNumerically(">=", drain))
	_, err := net.Dial("tcp", h.address)
	g.Expect(err).To(HaveOccurred())
}

// Clients send requests as fast as they can while the server stops, which is worse than behind a load balancer that watches
// readiness. No request fails until the drain delay is over, and every stored request was answered.
func TestServer_losesNothingWhenItStops(t *testing.T) {
	const delay = 300 * time.Millisecond
	g := NewWithT(t)
	h := newHarness(t, func(s *setup) { s.server.DrainDelay = delay })
	slow := func(context.Context) error {
		<-time.After(20 * time.Millisecond)
		return nil
	}
	h.store.before.Store(&slow)
	var (
		all     sync.WaitGroup
		answers atomic.Int64
	)
	failures := make(chan time.Time, 20)
	for range 20 {
		all.Go(func() {
			for h.postInit() == nil {
				answers.Add(1)
			}
			failures <- time.Now()
		})
	}
	g.Eventually(answers.Load).Should(BeNumerically(">", 100))
	stopping := time.Now()
	g.Expect(h.stop()).To(Succeed())
	all.Wait()
	close(failures)
	for at := range failures {
		g.Expect(at).To(BeTemporally(">=", stopping.Add(delay)))
	}
	g.Expect(h.gatherMetrics()).To(ContainSubstring(fmt.Sprintf("phoneproof_http_inits_total{result=\"created\"} %d\n", answers.Load())))
}

// postInit starts a verification, without a check against the contract.
func (h *harness) postInit() error {
	r, err := http.NewRequest(http.MethodPost, "http://"+h.address+pathInit, strings.NewReader(`{"phoneNumber":"+4915123456789"}`))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+keyAll)
	r.Header.Set("Content-Type", "application/json")
	response, err := h.client.Do(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if response.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", response.StatusCode)
	}
	return errors.Join(err, response.Body.Close())
}

func TestServer_closesRequestsAfterShutdownTimeout(t *testing.T) {
	g := NewWithT(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	entered := make(chan struct{})
	server, err := NewServer(ServerOptions{
		Listener: listener, DrainDelay: -1, ShutdownTimeout: 50 * time.Millisecond,
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(entered)
			<-r.Context().Done()
		}),
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(server.NeedLeaderElection()).To(BeFalse())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	go http.Get("http://" + listener.Addr().String()) //nolint:errcheck // the server closes the connection
	<-entered
	cancel()
	g.Expect(<-ended).To(MatchError(ContainSubstring("finish the requests in flight")))
}

func TestServer_returnsServeErrors(t *testing.T) {
	g := NewWithT(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	server, err := NewServer(ServerOptions{Listener: listener, Handler: http.NotFoundHandler()})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(listener.Close()).To(Succeed())
	g.Expect(server.Start(t.Context())).To(MatchError(ContainSubstring("serve HTTP")))
	_, err = NewServer(ServerOptions{})
	g.Expect(err).To(HaveOccurred())
}

// A long poll may take longer than the read timeout.
func TestServer_holdsALongPollPastTheReadTimeout(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t, func(s *setup) { s.limits.readHeader, s.limits.read = 2*time.Second, 3*time.Second })
	id := h.do(initFor(keyAll, h.newNumber(1))).stringField("requestId")
	start := time.Now()
	a := h.do(statusRequest(keyAll, "id="+id+"&wait=5s"))
	g.Expect(a.stringField("status")).To(Equal("PENDING"))
	g.Expect(time.Since(start)).To(BeNumerically(">=", 4900*time.Millisecond))
	g.Expect(h.do(statusRequest(keyAll, "id="+id)).status).To(Equal(200), "the connection must stay open")
}

func TestServer_clientThatDisconnectsFreesItsSlot(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	id := h.do(initFor(keyAll, h.newNumber(1))).stringField("requestId")
	conn, _ := h.dial(g, "GET /api/verify/status?wait=30s&id="+id+" HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "+keyAll+"\r\n\r\n")
	g.Eventually(h.gatherMetrics).Should(ContainSubstring("phoneproof_http_long_polls 1\n"))
	g.Expect(conn.Close()).To(Succeed())
	g.Eventually(h.gatherMetrics).Should(ContainSubstring("phoneproof_http_long_polls 0\n"))
	g.Expect(h.awaitLogLines(g, 2)[1]).To(HaveKeyWithValue("code", "client_gone"))
}

// Ten thousand idle connections use no more memory than the limit allows, and other clients are still answered.
func TestCosts_tenThousandIdleConnections(t *testing.T) {
	if raceDetected {
		t.Skip("the race detector keeps memory of its own; make test runs this test again without it")
	}
	g := NewWithT(t)
	h := newHarness(t)
	const most = 10_000
	held := int(boundedhttp.Budget() / boundedhttp.ConnectionCost)
	var files syscall.Rlimit
	g.Expect(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files)).To(Succeed())
	// Both ends of each connection are in this process. go test has already raised the soft limit to the hard one.
	if need := most + held + 500; files.Cur < uint64(need) {
		t.Skipf("needs %d open files, but the process may open only %d", need, files.Cur)
	}
	before := memoryInUse()
	conns := make([]net.Conn, 0, most)
	defer func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
	}()
	for i := range most {
		conn, err := net.Dial("tcp", h.address)
		g.Expect(err).NotTo(HaveOccurred())
		conns = append(conns, conn)
		if i%2 == 0 { // half of them have sent a request
			_, err = io.WriteString(conn, "GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n")
			g.Expect(err).NotTo(HaveOccurred())
		}
	}
	open := h.server.listener.Open
	g.Eventually(open).WithTimeout(time.Minute).Should(BeNumerically("<=", held))
	var used int64
	// Evicted connections release their memory shortly after they are counted.
	g.Eventually(func() int64 {
		used = memoryInUse() - before
		return used
	}).WithTimeout(time.Minute).Should(BeNumerically("<", 160<<20))
	t.Logf("%d connections dialled, %d held, %d KiB in all, %d bytes each", most, open(), used>>10, used/int64(max(open(), 1)))
	for i := range 50 {
		g.Expect(h.do(initFor(keyAll, h.newNumber(i))).status).To(Equal(200))
	}
	g.Expect(h.gatherMetrics()).To(MatchRegexp(`phoneproof_http_connections_evicted_total [0-9.e+]{3,}`))
}

// The maximum of long polls stays within its memory, and all end when the server stops.
func TestServer_allLongPollsHeld(t *testing.T) {
	g := NewWithT(t)
	const waits, budget = 400, 800 * boundedhttp.ConnectionCost // few enough to be held at once on a busy machine
	h := newHarness(t, func(s *setup) { s.server.Budget, s.options.Holds = budget, boundedhttp.NewHoldLimiter(budget) })
	id := h.do(initFor(keyAll, h.newNumber(1))).stringField("requestId")
	var keys []settings.Key
	for i := range waits / maxWaitsPerKey {
		name := fmt.Sprintf("a-key-of-some-length-number-%06d", i)
		keys = append(keys, settings.Key{Name: name, Hash: sha256.Sum256([]byte(name)), Scopes: settings.ScopeStatus})
	}
	h.changeSettings(func(s *settings.Settings) { s.Keys = keysOf(keys...) })
	before := memoryInUse()
	for i := range waits {
		h.dial(g, "GET /api/verify/status?wait=30s&id="+id+" HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "+keys[i%len(keys)].Name+"\r\n\r\n")
	}
	g.Eventually(h.gatherMetrics).WithTimeout(25 * time.Second).Should(ContainSubstring("phoneproof_http_long_polls 400\n"))
	used := memoryInUse() - before
	t.Logf("%d KiB in all, %d bytes each", used>>10, used/waits)
	g.Expect(used).To(BeNumerically("<", 24<<20))
	g.Expect(h.do(statusRequest(keyAll, "wait=30s&id="+id)).stringField("status")).To(Equal("PENDING"), "one more must be answered at once")
	start := time.Now()
	g.Expect(h.stop()).To(Succeed())
	g.Expect(time.Since(start)).To(BeNumerically("<", 10*time.Second))
	g.Expect(h.gatherMetrics()).To(ContainSubstring("phoneproof_http_long_polls 0\n"))
}

// memoryInUse returns the bytes of heap and stacks after a garbage collection.
func memoryInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
