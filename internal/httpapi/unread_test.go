package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/boundedhttp"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// longRead is longer than the deadline of the tests' connections, so that an answer that waits for the body never arrives.
const longRead = 10 * dialPatience

// A client is refused before it has sent its body, and its connection is closed.
func TestWire_refusesBeforeTheBodyCame(t *testing.T) {
	hook := func(read bool) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if read {
				_, _ = io.Copy(io.Discard, r.Body)
			}
			_, _ = io.WriteString(w, `{}`)
		})
	}
	h := newHarness(t, func(s *setup) {
		s.limits.read = longRead
		s.options.Hooks = map[string]http.Handler{
			"/hooks/refuses": hook(false), "/hooks/reads": hook(true),
			"/hooks/silent": http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
			"/hooks/flushes": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_ = http.NewResponseController(w).Flush()
				_, _ = io.WriteString(w, `{}`)
			}),
			"/hooks/panics": http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("before it read") }),
		}
	})
	g := NewWithT(t)
	var answered []*bufio.Reader
	json, status := authorization+"Content-Type: application/json\r\n", "Authorization: Bearer "+keyAll+"\r\n"
	for _, row := range []struct {
		line, headers string
		status        int
	}{
		{"POST " + pathInit, "", 401},
		{"POST " + pathInit, authorization, 415},
		{"POST " + pathInit, json + "Content-Encoding: gzip\r\n", 415},
		{"POST " + pathConfirm, "", 401},
		{"POST " + pathConfirm, status[:len(status)-2] + "x\r\n", 401},
		{"POST " + pathConfirm, authorization, 415},
		{"POST " + pathInit, "Expect: 100-continue\r\n", 401},
		{"POST /nothing", "", 404},
		{"PUT " + pathInit, "", 405},
		{"GET " + pathStatus + "?id=x", "", 401},
		{"GET " + pathStatus + "?id=x", status, 404},
		{"GET /openapi.json", "", 200},
		{"POST /hooks/refuses", "", 200},
		{"POST /hooks/silent", "", 200},
		{"POST /hooks/flushes", "", 200},
		{"POST /hooks/panics", "", 500},
	} {
		for _, length := range []string{"Content-Length: 100", "Transfer-Encoding: chunked"} {
			_, from := h.dial(g, row.line+" HTTP/1.1\r\nHost: localhost\r\n"+row.headers+length+"\r\n\r\n")
			method, _, _ := strings.Cut(row.line, " ")
			response, err := http.ReadResponse(from, &http.Request{Method: method})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(response.StatusCode).To(Equal(row.status), row.line)
			g.Expect(response.Close).To(BeTrue(), "%s: the rest of the body must not be read as a request", row.line)
			_, err = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			g.Expect(err).NotTo(HaveOccurred())
			answered = append(answered, from)
		}
	}
	for _, from := range answered {
		_, err := from.ReadByte()
		g.Expect(err).To(Equal(io.EOF))
	}

	_, from := h.dial(g, strings.Repeat("POST /hooks/reads HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}", 2))
	for range 2 {
		response, err := http.ReadResponse(from, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(response.Close).To(BeFalse(), "a body that was read keeps the connection open")
		_, err = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		g.Expect(err).NotTo(HaveOccurred())
	}
}

// A body that arrives despite a refusal does not prevent the answer, and a body that was read keeps the connection open.
func TestWire_whenTheConnectionStaysOpen(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	post := func(length int, headers, body string) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", pathInit, headers, length, body)
	}
	r := request{method: http.MethodPost, target: pathInit}
	_, from := h.dial(g, post(2, authorization, "{}")+post(2, authorization, "[]")+post(2, "", "{}"))
	for range 2 {
		a := h.readAnswer(g, r, from)
		g.Expect(a.status).To(Equal(400))
		g.Expect(a.last).To(BeFalse())
	}
	a := h.readAnswer(g, r, from)
	expectRefusal(g, a, 401, codeMissingKey, "")
	g.Expect(a.last).To(BeTrue())
}

// More connections than the server holds announce bodies that they do not send, without a key. Each gets its refusal, and
// other clients are answered meanwhile.
func TestServer_floodOfMissingBodies(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t, func(s *setup) { s.server.Budget, s.limits.read = 20*boundedhttp.ConnectionCost, longRead })
	flood := "POST /api/verify/init HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"
	for i := range 60 {
		_, from := h.dial(g, flood)
		expectRefusal(g, h.readAnswer(g, request{method: http.MethodPost, target: pathInit}, from), 401, codeMissingKey, "")
		if i%10 == 0 {
			_, from = h.dial(g, "GET /api/verify/status HTTP/1.1\r\nHost: localhost\r\n\r\n")
			g.Expect(h.readAnswer(g, request{method: http.MethodGet, target: pathStatus}, from).status).To(Equal(401))
		}
	}
}

// A flood of incomplete bodies with a valid key does not evict requests that the server is working on.
func TestServer_floodOfSlowBodies(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t, func(s *setup) { s.server.Budget = 20 * boundedhttp.ConnectionCost })
	id := h.do(initFor(keyAll, h.newNumber(1))).stringField("requestId")
	waiting := make(chan answer, 1)
	go func() { waiting <- h.do(statusRequest(keyAll, "wait=30s&id="+id)) }()
	g.Eventually(h.gatherMetrics).Should(ContainSubstring("phoneproof_http_long_polls 1\n"))
	for i := range 60 {
		h.dial(g, "POST /api/verify/init HTTP/1.1\r\nHost: localhost\r\n"+authorization+
			"Content-Type: application/json\r\nContent-Length: 40\r\n\r\n{")
		if i%10 == 0 {
			_, from := h.dial(g, "GET /api/verify/status HTTP/1.1\r\nHost: localhost\r\n\r\n")
			g.Expect(h.readAnswer(g, request{method: http.MethodGet, target: pathStatus}, from).status).To(Equal(401))
		}
	}
	h.verifyRequest(id, h.newNumber(1), verification.AssuranceUsual)
	g.Expect((<-waiting).stringField("status")).To(Equal("VERIFIED"), "a request in progress must not be evicted")
	g.Eventually(h.gatherMetrics).Should(MatchRegexp(`phoneproof_http_connections_evicted_total [0-9]{2}`))
}
