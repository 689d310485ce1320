package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/settings"
)

func TestAPI_answersWithAndWithoutThePrefix(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t, func(s *setup) {
		s.settings.PathPrefix = "/verify/v1"
		s.options.Hooks = map[string]http.Handler{"/hooks/whatsapp": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{}`)
		})}
	})
	statusOf := func(target string) int {
		return h.do(request{method: http.MethodGet, target: target}.markInvalid()).status
	}
	for _, target := range []string{pathStatus, "/verify/v1" + pathStatus} {
		g.Expect(h.do(request{method: http.MethodGet, target: target}.markUnlisted()).status).To(Equal(401), target)
	}
	g.Expect(statusOf("/verify/v1/openapi.json")).To(Equal(200))
	g.Expect(statusOf("/verify/v1/hooks/whatsapp")).To(Equal(200))
	g.Expect(statusOf("/hooks/whatsapp")).To(Equal(200))
	for _, target := range []string{"/verify/v1", "/verify/v1/", "/verify/v1/verify/v1/openapi.json", "/verify/v1openapi.json", "/verify/v2/openapi.json"} {
		g.Expect(statusOf(target)).To(Equal(404), target)
	}
	h.changeSettings(func(s *settings.Settings) { s.PathPrefix = "/other" })
	g.Expect(statusOf("/verify/v1/openapi.json")).To(Equal(404))
	g.Expect(statusOf("/other/openapi.json")).To(Equal(200))
}

// TestAPI_prefixOfPages: the path of baseURL may begin as the pages do.
func TestAPI_prefixOfPages(t *testing.T) {
	g := NewWithT(t)
	hook := func(status int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	}
	h := newHarness(t, withPage, func(c *setup) {
		c.options.Pages = hook(http.StatusAccepted)
		c.options.Hooks = map[string]http.Handler{"/hooks/whatsapp": hook(http.StatusCreated)}
	})
	for _, prefix := range []string{"/v", "/v/shop"} {
		h.changeSettings(func(s *settings.Settings) { s.PathPrefix = prefix })
		for path, want := range map[string]int{
			pathOpenAPI: http.StatusOK, pathRequests + "/id": http.StatusUnauthorized, "/hooks/whatsapp": http.StatusCreated,
			PagePrefix + "TICKET": http.StatusAccepted,
		} {
			for _, target := range []string{path, prefix + path} {
				response, err := h.client.Get("http://" + h.address + target)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(response.Body.Close()).To(Succeed())
				g.Expect(response.StatusCode).To(Equal(want), target)
			}
		}
	}
}

// markUnlisted marks a request whose path the contract does not list.
func (r request) markUnlisted() request {
	r.unlisted = true
	return r.markInvalid()
}

func TestAPI_hooks(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t, func(s *setup) {
		s.options.Hooks = map[string]http.Handler{
			"/hooks/plain": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				logr.FromContextOrDiscard(r.Context()).Info("inside")
				w.WriteHeader(http.StatusAccepted)
				fmt.Fprint(w, `{}`)
			}),
			"/hooks/silent": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
			}),
			"/hooks/panic": http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("in the hook") }),
			"/hooks/half": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprint(w, `{"half":`)
				panic("in the middle")
			}),
			"/hooks/abort": http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
		}
	})
	send := func(path string) (int, error) {
		r, err := http.NewRequest(http.MethodPut, "http://"+h.address+path, http.NoBody)
		g.Expect(err).NotTo(HaveOccurred())
		r.Header["X-Request-Id"] = []string{"given"}
		response, err := h.client.Do(r)
		if err != nil {
			return 0, err
		}
		defer response.Body.Close()
		_, err = io.ReadAll(response.Body)
		return response.StatusCode, err
	}
	g.Expect(send("/hooks/plain")).To(Equal(202))
	lines := h.awaitLogLines(g, 2)
	g.Expect(lines[0]).To(And(HaveKeyWithValue("msg", "inside"), HaveKeyWithValue("xRequestId", "given")))
	g.Expect(lines[1]).To(And(HaveKeyWithValue("route", "/hooks/plain"), HaveKeyWithValue("status", 202.0), HaveKeyWithValue("method", "PUT")))

	g.Expect(send("/hooks/silent")).To(Equal(200))
	g.Expect(h.awaitLogLines(g, 3)[2]).To(HaveKeyWithValue("status", 200.0))
	g.Expect(send("/hooks/panic")).To(Equal(500))
	_, err := send("/hooks/half")
	g.Expect(err).To(HaveOccurred(), "a partial answer must not look complete")
	_, err = send("/hooks/abort")
	g.Expect(err).To(HaveOccurred())
	g.Expect(h.awaitLogLines(g, 6)[5]).To(And(
		HaveKeyWithValue("route", "/hooks/abort"), HaveKeyWithValue("status", 500.0), HaveKeyWithValue("code", "internal"),
	))
	g.Expect(h.gatherMetrics()).NotTo(ContainSubstring(`status="0"`))
	g.Expect(h.gatherMetrics()).To(ContainSubstring("phoneproof_http_panics_total 2\n"), "an abort is not counted as a panic")
}

func TestNew_needsLittleMemory(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	allocations := testing.AllocsPerRun(5, func() {
		_, err := New(Options{Settings: h.settings.Load, Service: h.service, Invite: newInvitation})
		g.Expect(err).NotTo(HaveOccurred())
	})
	g.Expect(allocations).To(BeNumerically("<", 3000), "the contract in YAML is converted when it is asked for")
}

func TestAPI_refusesOptionsThatCannotWork(t *testing.T) {
	g := NewWithT(t)
	_, err := New(Options{})
	g.Expect(err).To(HaveOccurred())
	h := newHarness(t)
	good := Options{Settings: h.settings.Load, Service: h.service, Invite: newInvitation}
	for _, path := range []string{pathInit, "hooks/whatsapp"} {
		good.Hooks = map[string]http.Handler{path: http.NotFoundHandler()}
		_, err = New(good)
		g.Expect(err).To(MatchError(ContainSubstring(path)))
	}
	good.Hooks, good.Registerer = nil, h.registry
	_, err = New(good)
	g.Expect(err).To(HaveOccurred(), "the metrics are already registered")
}

func TestAPI_requestID(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	made := regexp.MustCompile(`^[0-9a-f]{32}$`)
	for given, kept := range map[string]bool{
		"9f2c1c52-6c1f-4d42-b6a0-7b1c35f0d7ab": true, "a.B_c-9": true, strings.Repeat("a", 128): true,
		"": false, strings.Repeat("a", 129): false, "a b": false, "a\tb": false, "é": false, "a/b": false, "\x1b[31m": false, `"`: false,
		"123456": true, "1234567": false, "+4915123456789": false, "4915123456789": false, "0151-234.567_89": false,
		"20261121-a": true, "pp_": false, keyAll: false, "app_1": true,
	} {
		g.Expect(isPlainID(given)).To(Equal(kept), "%q", given)
		id := chooseRequestID(http.Header{"X-Request-Id": {given}})
		g.Expect(id == given || made.MatchString(id)).To(BeTrue(), "%q", given)
	}
	a := h.do(statusRequest(keyAll, "id=x").withHeader("X-Request-Id", "mine"))
	g.Expect(a.joinedHeader("X-Request-Id")).To(Equal("mine"))
	b := h.do(statusRequest(keyAll, "id=x").withHeader("X-Request-Id", "one", "two"))
	g.Expect(b.joinedHeader("X-Request-Id")).To(MatchRegexp(made.String()))
	lines := h.awaitLogLines(g, 2)
	g.Expect(lines[0]["xRequestId"]).To(Equal("mine"))
	g.Expect(lines[1]["xRequestId"]).To(Equal(b.joinedHeader("X-Request-Id")))
}

func TestLog_oneLinePerRequest(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	number := h.newNumber(1)
	hostile := []request{
		initFor(keyAll, number).withHeader("User-Agent", strings.Repeat("\u009b31mA%0d%0a", 500)),
		initFor(keyAll, number).withHeader("X-Request-Id", "id{\"a\":\"b\"}"),
		statusRequest(keyAll, "id=%0d%0aX-Injected:%201&x=%1b[31m"+number[1:]),
		statusRequest(keyAll+"%0a", "id=x"),
		requestWithBody(`{"phoneNumber":"+49 1512 3456789\r\nlevel=ERROR msg=forged"}`).markInvalid(),
		{method: http.MethodGet, target: "/%0d%0aforged/" + number[1:]},
		{method: "FORGED", target: "/" + keyAll},
	}
	for _, r := range hostile {
		h.do(r)
	}
	lines := h.awaitLogLines(g, len(hostile))
	g.Expect(strings.Count(h.logText(), "\n")).To(Equal(len(hostile)))
	for _, line := range lines {
		g.Expect(line).To(And(
			HaveKeyWithValue("msg", "request"), HaveKey("xRequestId"), HaveKey("route"), HaveKey("method"), HaveKey("status"),
			HaveKey("code"), HaveKey("seconds"), HaveKey("keyName"), HaveLen(10),
		))
	}
	g.Expect(lines[0]).To(And(HaveKeyWithValue("route", pathInit), HaveKeyWithValue("keyName", "all"), HaveKeyWithValue("status", 200.0)))
	g.Expect(lines[5]).To(And(HaveKeyWithValue("route", "unknown"), HaveKeyWithValue("code", "not_found")))
	g.Expect(lines[6]).To(HaveKeyWithValue("method", "OTHER"))
	g.Expect(h.logText()).NotTo(Or(ContainSubstring("forged"), ContainSubstring("Injected"), ContainSubstring("\x1b")))
}

func TestLog_tenMegabytesOfUserAgent(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	before := heapInUse()
	conn, from := h.dial(g, "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\nUser-Agent: ")
	go io.WriteString(conn, strings.Repeat("A", 10<<20)) //nolint:errcheck // the server stops reading
	response, err := http.ReadResponse(from, nil)
	g.Expect(err).NotTo(HaveOccurred())
	_ = response.Body.Close()
	g.Expect(response.StatusCode).To(Equal(431))
	g.Expect(heapInUse() - before).To(BeNumerically("<", 12<<20))
	g.Expect(h.logText()).To(BeEmpty())
}

func TestMetrics_seriesDoNotGrow(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	round := func(i int) {
		h.do(request{method: http.MethodGet, target: fmt.Sprintf("/x%d", i)})
		h.do(request{method: fmt.Sprintf("M%d", i), target: pathInit})
		h.do(statusRequest(keyAll, fmt.Sprintf("id=vr%024d", i)))
		h.do(statusRequest(fmt.Sprintf("unknown-%d", i), "id=x"))
		h.do(initFor(keyAll, h.newNumber(i)))
		h.do(initFor(keyAll, strconv.Itoa(i)).markInvalid())
	}
	series := func() int { return strings.Count(h.gatherMetrics(), "\n") }
	round(0)
	before := series()
	const rounds = 20 // of six requests each
	for i := 1; i < rounds; i++ {
		round(i)
	}
	g.Expect(series()).To(Equal(before))
	for _, each := range []string{
		`phoneproof_http_requests_total{method="GET",route="unknown",status="404"}`,
		`phoneproof_http_requests_total{method="OTHER",route="/api/verify/init",status="405"}`,
		`phoneproof_http_inits_total{result="invalid_phone_number"}`,
	} {
		g.Expect(h.gatherMetrics()).To(ContainSubstring(fmt.Sprintf("%s %d\n", each, rounds)))
	}
}

func TestLimits_fitTogether(t *testing.T) {
	g := NewWithT(t)
	l := defaultLimits
	g.Expect(l.write).To(BeNumerically(">", maxWait+2*storeTimeout), "the longest poll must have time for two reads and the answer")
	g.Expect(l.readHeader).To(BeNumerically("<", l.read))
	g.Expect(storeTimeout).To(BeNumerically("<", 2*time.Second))
	g.Expect(defaultShutdownTimeout).To(BeNumerically(">", l.read+storeTimeout))
}
