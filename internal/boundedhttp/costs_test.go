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

// TestCosts measures what a connection makes the process hold, its client included.
func TestCosts(t *testing.T) {
	if raceDetected {
		t.Skip("the race detector has its own memory: make test runs it once more without")
	}
	const many = 200
	line := "GET / HTTP/1.1\r\nHost: a\r\n"
	// The names that differ most from each other cost most: none is shared.
	short := line + manyFields(longHeaderFields-2) + "A: " + strings.Repeat("b", longHeaderBytes-500)
	fields := line + manyFields(MaxHeaderFields-2) + "A: " + strings.Repeat("b", MaxHeaderBytes-1000)
	chunks := "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n" + manyFields(670) + "\r\n"
	for name, test := range map[string]struct {
		sent   string
		begins bool // the handler
		cost   int64
	}{
		"nothing sent":             {"", false, ConnectionCost},
		"a header without end":     {short, false, ConnectionCost},
		"a request at work":        {short + "\r\n\r\n", true, ConnectionCost},
		"a body without end":       {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("b", 3500), true, ConnectionCost},
		"a long header unfinished": {fields, false, ConnectionCost + longHeaderCost},
		"a long header at work":    {fields + "\r\n\r\n", true, ConnectionCost + longHeaderCost},
		"a long line":              {line + "A: " + strings.Repeat("b", MaxHeaderBytes-100), false, ConnectionCost + longHeaderCost},
		"a trailer":                {chunks, true, ConnectionCost + chunkedCost},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var begun atomic.Int64
			release := make(chan struct{})
			l := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.ContentLength < 0 {
					_, _ = io.Copy(io.Discard, r.Body)
				}
				begun.Add(1)
				<-release
			}), nil)
			defer close(release)
			dial(t, l, nil) // what is made once
			before := inUse()
			for range many {
				dial(t, l, []byte(test.sent))
			}
			if test.begins {
				g.Eventually(begun.Load).Should(BeEquivalentTo(many))
			} else {
				g.Eventually(l.pool.withHeader).WithArguments(len(test.sent)).Should(BeNumerically(">=", many))
			}
			each := (inUse() - before) / many
			t.Logf("%d bytes each", each)
			g.Expect(each).To(BeNumerically("<=", test.cost-socketCost), "the kernel's part is not Go's")
		})
	}
}

// TestCosts_TLS measures what handshakes make the process hold. A list of one-byte protocols is held eightfold, until the client
// finishes.
func TestCosts_TLS(t *testing.T) {
	if raceDetected {
		t.Skip("the race detector has its own memory: make test runs it once more without")
	}
	const many = 100
	for name, test := range map[string]struct {
		protocols int
		finished  bool
	}{
		"a usual handshake unfinished":             {1, false},
		"a usual handshake":                        {1, true},
		"the largest hello that is taken":          {handshakeBytes/2 - 1000, false},
		"the largest hello that is taken, at work": {handshakeBytes/2 - 1000, true},
		"the largest hello that TLS allows":        {32_000, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}
			for range test.protocols - 1 {
				config.NextProtos = append(config.NextProtos, "a")
			}
			l := start(t, echo, &tls.Config{Certificates: []tls.Certificate{newCertificate(t)}})
			dial(t, l, nil) // what is made once
			before := inUse()
			for range many {
				raw := dial(t, l, nil)
				if test.finished {
					g.Expect(tls.Client(raw, config).Handshake()).To(Succeed())
					continue
				}
				g.Expect(tls.Client(oneWay{raw}, config).Handshake()).NotTo(Succeed())
				_, _ = raw.Read(make([]byte, 1)) // the server has judged the hello, or closed the connection
			}
			each := (inUse() - before) / many
			t.Logf("%d bytes each", each)
			g.Expect(each).To(BeNumerically("<=", ConnectionCost-socketCost+tlsCost))
		})
	}
}

// oneWay is a connection of a client that reads no answer.
type oneWay struct{ net.Conn }

func (oneWay) Read([]byte) (int, error) { return 0, io.EOF }

// withHeader returns how many connections have sent that much of a header.
func (p *pool) withHeader(size int) int {
	n := 0
	for _, c := range p.all() {
		c.mu.Lock()
		if c.header.bytes >= size {
			n++
		}
		c.mu.Unlock()
	}
	return n
}

// all returns the connections that wait for their clients.
func (p *pool) all() []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*conn
	for e := p.waiting.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*conn))
	}
	return all
}

// inUse returns the bytes of heap and stacks, after a collection.
func inUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools held is gone after the second
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
