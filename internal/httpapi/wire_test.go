package httpapi

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/boundedhttp"
)

// dialPatience is the deadline of a connection of a test.
const dialPatience = time.Minute

// dial opens a connection to the server and sends the text.
func (h *harness) dial(g Gomega, sent string) (net.Conn, *bufio.Reader) {
	conn, err := net.Dial("tcp", h.address)
	g.Expect(err).NotTo(HaveOccurred())
	h.t.Cleanup(func() { _ = conn.Close() })
	g.Expect(conn.SetDeadline(time.Now().Add(dialPatience))).To(Succeed())
	_, err = io.WriteString(conn, sent)
	g.Expect(err).NotTo(HaveOccurred())
	return conn, bufio.NewReader(conn)
}

// readAnswer reads an answer of the API from a connection.
func (h *harness) readAnswer(g Gomega, r request, from *bufio.Reader) answer {
	response, err := http.ReadResponse(from, &http.Request{Method: r.method})
	g.Expect(err).NotTo(HaveOccurred())
	return h.checkAnswer(r.markInvalid(), response)
}

const authorization = "Authorization: Bearer the/key+that~may=only?init,not{status}!\r\n"

func TestWire_pathsAndMethods(t *testing.T) {
	h := newHarness(t)
	for _, row := range []struct {
		line   string
		status int
		code   string
		allow  string
	}{
		{"GET /", 404, "not_found", ""},
		{"GET //api/verify/status", 404, "not_found", ""},
		{"GET /api//verify/status", 404, "not_found", ""},
		{"GET /api/verify/status/", 404, "not_found", ""},
		{"GET /api/verify/status/.", 404, "not_found", ""},
		{"GET /api/./verify/status", 404, "not_found", ""},
		{"GET /x/../api/verify/status", 404, "not_found", ""},
		{"GET /api/verify/%2e%2e/verify/status", 404, "not_found", ""},
		{"GET /%2e%2e/etc/passwd", 404, "not_found", ""},
		{"GET /api/verify/%73tatus", 404, "not_found", ""},
		{"GET /api%2Fverify%2Fstatus", 404, "not_found", ""},
		{"GET /api/verify/status%00", 404, "not_found", ""},
		{"GET /API/verify/status", 404, "not_found", ""},
		{"GET /api/verify", 404, "not_found", ""},
		{"GET http://elsewhere.example/", 404, "not_found", ""},
		{"GET http://elsewhere.example/api/verify/status?id=x", 401, "missing_api_key", ""},
		{"GET /api/verify/status?id=x", 401, "missing_api_key", ""},
		{"HEAD /api/verify/status?id=x", 405, "", "GET"},
		{"POST /api/verify/status?id=x", 405, "method_not_allowed", "GET"},
		{"OPTIONS /api/verify/status", 405, "method_not_allowed", "GET"},
		{"TRACE /api/verify/status", 405, "method_not_allowed", "GET"},
		{"GET /api/verify/confirm", 405, "method_not_allowed", "POST"},
		{"HEAD /api/verify/confirm?id=x&code=123456", 405, "", "POST"},
		{"PUT /api/verify/confirm", 405, "method_not_allowed", "POST"},
		{"post /api/verify/confirm", 405, "method_not_allowed", "POST"},
		{"POST /api/verify/confirm/", 404, "not_found", ""},
		{"GET /api/verify/init", 405, "method_not_allowed", "POST"},
		{"HEAD /api/verify/init", 405, "", "POST"},
		{"post /api/verify/init", 405, "method_not_allowed", "POST"},
		{"PROPFIND /api/verify/init", 405, "method_not_allowed", "POST"},
		{"DELETE /openapi.json", 405, "method_not_allowed", "GET, HEAD"},
		{"OPTIONS *", 404, "not_found", ""},
		{"CONNECT elsewhere.example:443", 404, "not_found", ""},
	} {
		t.Run(row.line, func(t *testing.T) {
			g := NewWithT(t)
			h.t = t
			method, target, _ := strings.Cut(row.line, " ")
			_, from := h.dial(g, row.line+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
			a := h.readAnswer(g, request{method: method, target: strings.TrimPrefix(target, "http://elsewhere.example")}, from)
			g.Expect([]any{a.status, a.errorField("code"), a.joinedHeader("Allow")}).To(Equal([]any{row.status, row.code, row.allow}))
			g.Expect(a.joinedHeader("Content-Type")).To(Equal("application/json"))
			g.Expect(a.joinedHeader("X-Content-Type-Options")).To(Equal("nosniff"))
			g.Expect(a.header).NotTo(HaveKey("Location"))
		})
	}
	h.t = t
}

func TestWire_contentLengthAndChunks(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	smuggled := "GET /api/verify/status?id=smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
	_, from := h.dial(g, "POST /api/verify/init HTTP/1.1\r\nHost: localhost\r\n"+authorization+
		"Content-Type: application/json\r\nContent-Length: "+strconv.Itoa(5+len(smuggled))+"\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"+smuggled)
	a := h.readAnswer(g, request{method: http.MethodPost, target: pathInit}, from)
	expectRefusal(g, a, 400, codeInvalidJSON, "")
	g.Expect(a.last).To(BeTrue())
	_, err := from.ReadByte()
	g.Expect(err).To(Equal(io.EOF), "the rest must not be read as a request")
	g.Expect(h.awaitLogLines(g, 1)[0]["route"]).To(Equal(pathInit))
}

// In HTTP/1.0 net/http uses the length and ignores the chunks. The connection must be closed in this case too.
func TestWire_chunksInHTTP10(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	_, from := h.dial(g, "POST /api/verify/init HTTP/1.0\r\n"+authorization+"Connection: keep-alive\r\n"+
		"Content-Type: application/json\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}GET /nothing HTTP/1.0\r\n\r\n")
	a := h.readAnswer(g, request{method: http.MethodPost, target: pathInit}, from)
	expectRefusal(g, a, 400, codeMissingField, "phoneNumber")
	_, err := from.ReadByte()
	g.Expect(err).To(Equal(io.EOF))
}

func TestWire_invalidRequests(t *testing.T) {
	h := newHarness(t)
	head := "POST /api/verify/init HTTP/1.1\r\nHost: localhost\r\n"
	for name, row := range map[string]struct {
		sent   string
		status int
	}{
		"two lengths":           {head + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400},
		"list of lengths":       {head + "Content-Length: 1, 2\r\n\r\nab", 400},
		"negative length":       {head + "Content-Length: -1\r\n\r\n", 400},
		"unknown coding":        {head + "Transfer-Encoding: xchunked\r\n\r\n", 501},
		"two codings":           {head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", 501},
		"space before colon":    {head + "Content-Length : 1\r\n\r\na", 400},
		"no host":               {"GET / HTTP/1.1\r\n\r\n", 400},
		"two hosts":             {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
		"NUL in a header":       {head + "X-A: a\x00b\r\n\r\n", 400},
		"unknown expectation":   {head + "Expect: something\r\n\r\n", 417},
		"HTTP/2.0":              {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
		"100 kB header":         {head + "X-A: " + strings.Repeat("a", 100_000) + "\r\n\r\n", 431},
		"1,000 headers":         {head + strings.Repeat("X-A: 0123456789\r\n", 1000) + "\r\n", 431},
		"long request line":     {"GET /" + strings.Repeat("a", 100_000) + " HTTP/1.1\r\nHost: a\r\n\r\n", 431},
		"header over the limit": {head + "X-A: " + strings.Repeat("a", boundedhttp.MaxHeaderBytes) + "\r\n\r\n", 431},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			conn, err := net.Dial("tcp", h.address)
			g.Expect(err).NotTo(HaveOccurred())
			t.Cleanup(func() { _ = conn.Close() })
			go io.WriteString(conn, row.sent) //nolint:errcheck // the server may stop reading
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			g.Expect(err).NotTo(HaveOccurred())
			defer response.Body.Close()
			g.Expect(response.StatusCode).To(Equal(row.status))
			g.Expect(response.Close).To(BeTrue())
		})
	}
	g := NewWithT(t)
	g.Expect(h.parseLog()).To(BeEmpty(), "none of these may reach a handler")
	g.Eventually(h.gatherMetrics).Should(ContainSubstring("phoneproof_http_unserved_requests_total 15\n"))
}

func TestWire_headersUnderTheLimit(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	a := h.do(statusRequest(keyAll, "id=x").withHeader("X-A", strings.Repeat("a", boundedhttp.MaxHeaderBytes-1000)))
	g.Expect(a.status).To(Equal(404))
}

func TestWire_upgradesAreIgnored(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	_, from := h.dial(g, "GET /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\n"+
		"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n")
	a := h.readAnswer(g, request{method: http.MethodGet, target: "/nothing"}, from)
	expectRefusal(g, a, 404, codeRouteNotFound, "")
	g.Expect(a.proto).To(Equal("HTTP/1.1"))

	_, from = h.dial(g, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	a = h.readAnswer(g, request{method: http.MethodGet, target: "*"}, from)
	expectRefusal(g, a, 404, codeRouteNotFound, "")
	g.Expect(a.proto).To(Equal("HTTP/1.1"), "must not be an HTTP/2 frame")
}

func TestWire_http10KeepAlive(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	one := "GET /api/verify/status?id=x HTTP/1.0\r\n" + authorization + "Connection: keep-alive\r\n\r\n"
	_, from := h.dial(g, one+one+"GET /nothing HTTP/1.0\r\n\r\n")
	for range 2 {
		a := h.readAnswer(g, request{method: http.MethodGet, target: pathStatus + "?id=x"}, from)
		expectRefusal(g, a, 403, codeInsufficientScope, "")
	}
	a := h.readAnswer(g, request{method: http.MethodGet, target: "/nothing"}, from)
	expectRefusal(g, a, 404, codeRouteNotFound, "")
	_, err := from.ReadByte()
	g.Expect(err).To(Equal(io.EOF), "without keep-alive the connection must be closed")
}

func TestWire_slowHeadersAndBodies(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t, func(s *setup) { s.limits.readHeader, s.limits.read = 2*time.Second, 3*time.Second })
	_, fromHeaders := h.dial(g, "GET / HTTP/1.1\r\nHost: loc")
	_, fromSlow := h.dial(g, "POST /api/verify/init HTTP/1.1\r\nHost: localhost\r\n"+authorization+
		"Content-Type: application/json\r\nContent-Length: 40\r\n\r\n{")
	_, err := fromHeaders.ReadByte()
	g.Expect(err).To(Equal(io.EOF), "incomplete headers get no answer")
	a := h.readAnswer(g, request{method: http.MethodPost, target: pathInit}, fromSlow)
	expectRefusal(g, a, 408, codeBodyTimeout, "")
	g.Expect(a.last).To(BeTrue())
}

func TestWire_brokenBodies(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	head := "POST /api/verify/init HTTP/1.1\r\nHost: localhost\r\n" + authorization + "Content-Type: application/json\r\n"
	_, from := h.dial(g, head+"Transfer-Encoding: chunked\r\n\r\nzz\r\n")
	a := h.readAnswer(g, request{method: http.MethodPost, target: pathInit}, from)
	expectRefusal(g, a, 400, codeIncompleteBody, "")
	short, from := h.dial(g, head+"Content-Length: 40\r\n\r\n{}")
	g.Expect(short.(*net.TCPConn).CloseWrite()).To(Succeed())
	a = h.readAnswer(g, request{method: http.MethodPost, target: pathInit}, from)
	expectRefusal(g, a, 400, codeIncompleteBody, "")
}

func TestWire_continueForAcceptedBodiesOnly(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	_, from := h.dial(g, "POST /api/verify/init HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 999999\r\n\r\n")
	a := h.readAnswer(g, request{method: http.MethodPost, target: pathInit}, from)
	expectRefusal(g, a, 401, codeMissingKey, "")
}

// A client that sends endless chunks is disconnected at the limit, with and without a key.
func TestWire_fiveGigabytesInChunks(t *testing.T) {
	h := newHarness(t)
	for name, auth := range map[string]string{"no key": "", "key": authorization} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			h.t = t
			before := heapInUse()
			conn, from := h.dial(g, "POST /api/verify/init HTTP/1.1\r\nHost: localhost\r\n"+auth+
				"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
			taken := make(chan int64)
			go func() {
				chunk := "10000\r\n" + strings.Repeat("a", 0x10000) + "\r\n"
				var n int64
				for n < 5<<30 {
					written, err := io.WriteString(conn, chunk)
					n += int64(written)
					if err != nil {
						break
					}
				}
				taken <- n
			}()
			a := h.readAnswer(g, request{method: http.MethodPost, target: pathInit}, from)
			g.Expect(a.status).To(BeElementOf(401, 413))
			n := <-taken
			g.Expect(n).To(BeNumerically("<", 64<<20), "only the buffers of the kernel may be filled")
			g.Expect(heapInUse()-before).To(BeNumerically("<", 4<<20), "bytes of heap")
			t.Logf("%d bytes left the client, the heap grew by %d", n, heapInUse()-before)
		})
	}
	h.t = t
}

// heapInUse returns the bytes of heap in use after a garbage collection.
func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
