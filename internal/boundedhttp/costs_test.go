package boundedhttp

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
)

// TestCosts measures the memory of a connection, its client included.
func TestCosts(t *testing.T) {
	if raceDetected {
		t.Skip("the race detector uses memory itself; make test runs this test without it")
	}
	const many = 200
	line := "GET / HTTP/1.1\r\nHost: a\r\n"
	// Names that are all different use most memory, because none is shared.
	short := line + manyFields(longHeaderFields-2) + "A: " + strings.Repeat("b", longHeaderBytes-500)
	fields := line + manyFields(MaxHeaderFields-2) + "A: " + strings.Repeat("b", MaxHeaderBytes-1000)
	chunks := "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n" + manyFields(670) + "\r\n"
	for name, test := range map[string]struct {
		sent   string
		begins bool // the handler
		cost   int64
	}{
		"nothing sent":              {"", false, ConnectionCost},
		"a header without end":      {short, false, ConnectionCost},
		"a request in progress":     {short + "\r\n\r\n", true, ConnectionCost},
		"a body without end":        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("b", 3500), true, ConnectionCost},
		"a long header unfinished":  {fields, false, ConnectionCost + longHeaderCost},
		"a long header in progress": {fields + "\r\n\r\n", true, ConnectionCost + longHeaderCost},
		"a long line":               {line + "A: " + strings.Repeat("b", MaxHeaderBytes-100), false, ConnectionCost + longHeaderCost},
		"a trailer":                 {chunks, true, ConnectionCost + chunkedCost},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var begun atomic.Int64
			release := make(chan struct{})
			l := startServer(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.ContentLength < 0 {
					_, _ = io.Copy(io.Discard, r.Body)
				}
				begun.Add(1)
				<-release
			}), nil)
			defer close(release)
			dialServer(t, l, nil) // warms up
			before := memoryInUse()
			for range many {
				dialServer(t, l, []byte(test.sent))
			}
			if test.begins {
				g.Eventually(begun.Load).Should(BeEquivalentTo(many))
			} else {
				g.Eventually(l.pool.countSentHeaders).WithArguments(len(test.sent)).Should(BeNumerically(">=", many))
			}
			each := (memoryInUse() - before) / many
			t.Logf("%d bytes each", each)
			g.Expect(each).To(BeNumerically("<=", test.cost-socketCost), "the memory of the kernel is not measured here")
		})
	}
}

// TestCosts_TLS measures the memory of handshakes. A list of one-byte protocols uses eight times its size until the handshake
// ends.
func TestCosts_TLS(t *testing.T) {
	if raceDetected {
		t.Skip("the race detector uses memory itself; make test runs this test without it")
	}
	const many = 100
	for name, test := range map[string]struct {
		protocols int
		finished  bool
	}{
		"a usual handshake unfinished":         {1, false},
		"a usual handshake":                    {1, true},
		"the largest accepted hello":           {handshakeBytes/2 - 1000, false},
		"the largest accepted hello, finished": {handshakeBytes/2 - 1000, true},
		"the largest hello that TLS allows":    {32_000, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}
			for range test.protocols - 1 {
				config.NextProtos = append(config.NextProtos, "a")
			}
			l := startServer(t, echo, &tls.Config{Certificates: []tls.Certificate{newCertificate(t)}})
			dialServer(t, l, nil) // warms up
			before := memoryInUse()
			for range many {
				raw := dialServer(t, l, nil)
				if test.finished {
					g.Expect(tls.Client(raw, config).Handshake()).To(Succeed())
					continue
				}
				g.Expect(tls.Client(oneWay{raw}, config).Handshake()).NotTo(Succeed())
				_, _ = raw.Read(make([]byte, 1)) // waits until the server has handled the hello or closed the connection
			}
			each := (memoryInUse() - before) / many
			t.Logf("%d bytes each", each)
			g.Expect(each).To(BeNumerically("<=", ConnectionCost-socketCost+tlsCost))
		})
	}
}

// oneWay is the connection of a client that reads no answers.
type oneWay struct{ net.Conn }

func (oneWay) Read([]byte) (int, error) { return 0, io.EOF }

// countSentHeaders returns how many waiting connections have sent at least size bytes of a header.
func (p *pool) countSentHeaders(size int) int {
	n := 0
	for _, c := range p.waitingConns() {
		c.mu.Lock()
		if c.header.bytes >= size {
			n++
		}
		c.mu.Unlock()
	}
	return n
}

// waitingConns returns the connections in the queue.
func (p *pool) waitingConns() []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*conn
	for e := p.waiting.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*conn))
	}
	return all
}

// memoryInUse returns the bytes of heap and stacks after a garbage collection.
func memoryInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // the second one empties the pools
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
