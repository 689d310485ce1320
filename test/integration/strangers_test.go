package integration_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
)

// strangersPerPort is the number of connections to each port.
const strangersPerPort = 4096

// Strangers send what is cheap for them and expensive for net/http or the kernel: endless fields, headers and bodies that are
// never finished, handshakes that stop halfway, requests whose responses are never read, and nothing at all.
var _ = Describe("Strangers at every port", Serial, func() {
	BeforeEach(func(ctx SpecContext) { startPlainPrograms(ctx) })

	It("make no process use 200 MiB, and lock out no client", func(ctx SpecContext) {
		var files syscall.Rlimit
		Expect(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files)).To(Succeed())
		if files.Cur < 4*strangersPerPort+1000 {
			Skip(fmt.Sprintf("this needs %d open files, and the process may open %d", 4*strangersPerPort+1000, files.Cur))
		}
		GinkgoT().Setenv("GOMEMLIMIT", "230MiB") // of a pod with the usual limit of 256Mi
		s := newShop(ctx)
		op := startOperator(ctx, s, "--metrics-secure=true")
		s.bindInCluster(ctx, "metrics_auth_role.yaml", "phoneproof-operator")
		s.bindInCluster(ctx, "metrics_reader_role.yaml", s.createAccount(ctx, "prometheus"))
		prometheus := s.tokenFor(ctx, "prometheus")
		Eventually(op.Ready).WithContext(ctx).WithArguments(ctx).Should(BeTrue(), op.output)
		s.start(ctx, 1)
		server := s.replicas[0]

		most := map[string]*atomic.Int64{"serve": {}, "operator": {}, "sockets of serve": {}, "sockets of the operator": {}}
		watched, stopWatching := context.WithCancel(ctx)
		var watchers sync.WaitGroup
		watchers.Go(func() { watchMemory(watched, server, most["serve"], most["sockets of serve"]) })
		watchers.Go(func() { watchMemory(watched, op, most["operator"], most["sockets of the operator"]) })
		began := time.Now()
		DeferCleanup(func() {
			for name, held := range most {
				AddReportEntry("memory", fmt.Sprintf("%s held %d MiB at most, within %s", name, held.Load()>>20, time.Since(began)))
			}
		})
		var attack strangers
		succeeded := map[string]int{}
		count := func(what string, status int) int {
			if status == http.StatusOK {
				succeeded[what]++
			}
			return status
		}
		expectAllServed := func() {
			isAnswered(ctx, "init", orUndecided, func() int {
				status, _ := server.callAPI(ctx, s.key, http.MethodPost, "/api/verify/init", `{"phoneNumber": "+4915112345678"}`)
				return count("init", status)
			})
			for _, r := range []*replica{server, op} {
				isAnswered(ctx, "liveness", Equal(http.StatusOK), func() int { return r.probeOnce(ctx, "/livez") })
				isAnswered(ctx, "readiness", orUndecided, func() int { return count(r.Health, r.probeOnce(ctx, "/readyz")) })
			}
			for url, token := range map[string]string{"http://" + server.Health + "/metrics": "", "https://" + op.API + "/metrics": prometheus} {
				isAnswered(ctx, "a scrape of "+url, Equal(http.StatusOK), func() int {
					status, _ := s.scrapeMetrics(ctx, url, token)
					return status
				})
			}
		}
		expectAllServed() // caches the review of Prometheus's token
		for _, address := range []string{server.API, server.Health, op.Health} {
			attack.openConns(ctx, address, plainPayloads())
		}
		attack.openConns(ctx, op.API, tlsPayloads())
		expectAllServed()
		attack.arrived.Wait()
		clear(succeeded)
		for range 20 {
			expectAllServed()
		}
		for _, what := range []string{"init", server.Health, op.Health} {
			Expect(succeeded[what]).To(BeNumerically(">", 0), "%s is not only undecided", what)
		}
		attack.closeAll()
		stopWatching()
		watchers.Wait()
		for name, held := range most {
			Expect(held.Load()).To(BeNumerically("<", 200<<20), name)
		}
		Expect(server.Running()).To(BeTrue())
		Expect(op.Running()).To(BeTrue())
	}, SpecTimeout(hang))
})

// orUndecided also accepts what is answered while the API server is slow.
var orUndecided = BeElementOf(http.StatusOK, http.StatusServiceUnavailable)

// isAnswered tries as often as a kubelet before it restarts a container, a second apart. Tries are counted, not timed: on a busy
// machine one may take longer than a second.
func isAnswered(ctx context.Context, what string, wanted types.GomegaMatcher, try func() int) {
	GinkgoHelper()
	status := 0
	for range 3 {
		status = try()
		if answered, err := wanted.Match(status); err == nil && answered {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	Expect(status).To(wanted, what+" was not answered three times in a row")
}

// watchMemory records the peak memory of a process including its sockets, and that of its sockets alone.
func watchMemory(ctx context.Context, r *replica, most, mostSockets *atomic.Int64) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			memory, _ := r.Memory() // none if it has ended
			sockets := queuedBytes(r.API) + queuedBytes(r.Health)
			mostSockets.Store(max(mostSockets.Load(), sockets))
			most.Store(max(most.Load(), memory.Resident+sockets))
		}
	}
}

// queuedBytes returns the size of the kernel's queues of all connections to an address: twice the queued bytes, because the
// kernel counts whole buffers.
func queuedBytes(address string) int64 {
	_, port, err := net.SplitHostPort(address)
	Expect(err).NotTo(HaveOccurred())
	number, err := strconv.Atoi(port)
	Expect(err).NotTo(HaveOccurred())
	local := fmt.Sprintf(":%04X", number)
	var sum int64
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		content, err := os.ReadFile(table)
		if err != nil {
			continue // no IPv6, or no Linux
		}
		for line := range strings.Lines(string(content)) {
			fields := strings.Fields(line)
			if len(fields) < 5 || !strings.HasSuffix(fields[1], local) {
				continue
			}
			var unsent, unread int64
			if n, err := fmt.Sscanf(fields[4], "%x:%x", &unsent, &unread); n == 2 && err == nil {
				sum += 2 * (unsent + unread)
			}
		}
	}
	return sum
}

// strangers are connections that stay open.
type strangers struct {
	arrived sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

// payload is what a stranger does with a new connection. An error only means that the server closed it.
type payload func(conn net.Conn) error

// openConns opens connections to a port, a few at a time, and sends each the next payload in turn.
func (s *strangers) openConns(ctx context.Context, address string, payloads []payload) {
	var turn atomic.Int64
	for range 8 {
		s.arrived.Go(func() {
			var dialer net.Dialer
			for n := turn.Add(1); n <= strangersPerPort; n = turn.Add(1) {
				conn, err := dialer.DialContext(ctx, "tcp", address)
				if err != nil {
					continue // the port is full at the moment
				}
				s.mu.Lock()
				s.conns = append(s.conns, conn)
				s.mu.Unlock()
				_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
				// A refused payload is not read to its end.
				_ = conn.SetDeadline(time.Now().Add(time.Second))
				_ = payloads[n%int64(len(payloads))](conn)
			}
		})
	}
}

func (s *strangers) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conn := range s.conns {
		_ = conn.Close() // the server may have closed it
	}
}

// sendPlain returns a payload of bytes.
func sendPlain(content string) payload {
	return func(conn net.Conn) error {
		_, err := io.WriteString(conn, content)
		return err
	}
}

// manyFields returns header fields of that many bytes, of which no two are alike.
func manyFields(size int) string {
	var b strings.Builder
	for n := 0; b.Len() < size; n++ {
		fmt.Fprintf(&b, "%c%c%c:\r\n", 'a'+n%26, 'a'+n/26%26, 'a'+n/676%26)
	}
	return b.String()[:size]
}

// plainPayloads returns the payloads for a port without TLS.
func plainPayloads() []payload {
	const mac = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	return []payload{
		sendPlain("GET / HTTP/1.1\r\nHost: a\r\n" + manyFields(16_000)),
		sendPlain("GET /metrics HTTP/1.1\r\nHost: a\r\nX-A: " + strings.Repeat("a", 16_000)),
		sendPlain(""),
		sendPlain("POST /hooks/whatsapp HTTP/1.1\r\nHost: a\r\nX-Hub-Signature-256: sha256=" + mac + "\r\nContent-Length: 3000000\r\n\r\n" +
			strings.Repeat(" ", 20_000)),
		sendPlain("POST /livez HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n" + strings.Repeat(" ", 20_000)),
		sendPlain("GET /metrics HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n"),
		sendPlain("POST /hooks/whatsapp HTTP/1.1\r\nHost: a\r\nX-Hub-Signature-256: sha256=" + mac +
			"\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n \r\n0\r\n" + manyFields(4_000)),
		sendPlain("GET / HTTP/1.1\r\nHost: a\r\n" + manyFields(16_000)),
		// The responses are never read, so that both buffers of the kernel fill up.
		sendPlain(strings.Repeat("GET /livez HTTP/1.1\r\nHost: a\r\n\r\n", 1000)),
		sendPlain(strings.Repeat("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", 10)),
		// A port with the default of net/http accepts a megabyte.
		sendPlain("GET / HTTP/1.1\r\nHost: a\r\n" + manyFields(1_000_000)),
	}
}

// tlsPayloads returns the payloads for a port with TLS: handshakes that stop at each step, and requests after complete ones.
func tlsPayloads() []payload {
	const guess = "GET /metrics HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "
	return []payload{
		sendPlain(""),
		sendPlain("\x16\x03\x01\x02\x00\x01\x00"), // a record without its content
		sendPlain("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"),
		sendHello(1),
		sendHello(3_000), // one-byte protocols, for which the server uses eight times the memory
		sendHello(32_000),
		sendSecure(""),
		sendSecure("GET / HTTP/1.1\r\nHost: a\r\n" + manyFields(16_000)),
		sendSecure("POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n" + strings.Repeat(" ", 20_000)),
		sendSecure(guess + "a-guess\r\n\r\n"),
		sendSecure(guess + strings.Repeat("a", 12_000) + "\r\n\r\n"),
		sendSecure(strings.Repeat(guess+"a-guess\r\n\r\n", 1000)),
	}
}

// sendHello begins a handshake, with that many protocols, and never continues it.
func sendHello(protocols int) payload {
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}
	for range protocols - 1 {
		config.NextProtos = append(config.NextProtos, "a")
	}
	return func(conn net.Conn) error { return tls.Client(deafConn{conn}, config).Handshake() }
}

// sendSecure sends bytes after a complete handshake.
func sendSecure(content string) payload {
	config := &tls.Config{InsecureSkipVerify: true}
	return func(conn net.Conn) error {
		secure := tls.Client(conn, config)
		if err := secure.Handshake(); err != nil {
			return err
		}
		_, err := io.WriteString(secure, content)
		return err
	}
}

// deafConn is a client's connection that reads nothing.
type deafConn struct{ net.Conn }

func (deafConn) Read([]byte) (int, error) { return 0, io.EOF }
