package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/boundedhttp"
	"github.com/phoneproof/phoneproof/internal/page"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// TestAPI_answersShortCallsBesideTheHeld has ten keys and 2,000 pages ask for more than a server with that memory may hold.
func TestAPI_answersShortCallsBesideTheHeld(t *testing.T) {
	const batch = 100 // so that no connection has to make room
	for name, test := range map[string]struct {
		memory, connections int
		header              string
		cost                int // of each wait, in connections
		most, perKey, tests int // waits
	}{
		"64Mi":                    {64 << 20, 268, "", 1, 134, 33, 16},
		"256Mi":                   {256 << 20, 1075, "", 1, 537, 100, 67},
		"64Mi, with long headers": {64 << 20, 268, "X-Long: " + strings.Repeat("a", 5<<10) + "\r\n", 2, 67, 16, 8},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCrowd(t, int64(test.memory)*9/10/3)
			w.Expect(w.apiBudget() / boundedhttp.ConnectionCost).To(BeEquivalentTo(test.connections))
			askToWait := func(key string, code verification.Code) {
				for range test.perKey + test.tests {
					w.sendRaw(t, "/api/verify/status?wait=30s&id="+w.project.RequestID(code), "Authorization: Bearer "+key+"\r\n"+test.header)
				}
			}
			testCode := w.createCode(t, true)
			askToWait(w.keys[0], testCode)
			askToWait(w.keys[1], testCode)
			w.expectHeld(test.tests, 0)
			for asked := batch; asked <= 2000; asked += batch {
				for range batch {
					at, err := url.Parse(page.URL(w.current(), verification.WhatsApp, w.createCode(t, false), time.Now()))
					w.Expect(err).NotTo(HaveOccurred())
					w.sendRaw(t, at.Path+"/events", "")
				}
				w.expectHeld(test.tests, min(asked, test.cost*(test.most-test.tests)))
			}
			code := w.createCode(t, false)
			for i, key := range w.keys[2:] {
				askToWait(key, code)
				waits := min(test.most, test.perKey*(i+1))
				w.expectHeld(waits, test.cost*(test.most-waits))
				w.readStatuses(t, w.keys[2:], w.project.RequestID(code))
			}
			w.Expect(w.readMetric("phoneproof_http_connections_evicted_total")).To(BeZero())
		})
	}
}

// crowd is a server with pages and with keys, the first two of which are test keys. It counts the raw requests that were sent and answered.
type crowd struct {
	*testServer

	keys     []string
	address  string
	sent     int
	answered atomic.Int64
}

// newCrowd serves a project within that budget until the test ends.
func newCrowd(t *testing.T, budget int64) *crowd {
	t.Helper()
	w := &crowd{testServer: newTestServer(t)}
	w.dependencies.ConnectionBudget = budget
	s := *w.current()
	s.BaseURL, s.Page = "https://verify.example", &settings.Page{}
	s.WhatsApp = &settings.WhatsApp{AppSecret: settings.NewSecret([]byte("an app secret")), PhoneNumber: "+15550100100"}
	var keys []settings.Key
	for i := range 10 {
		value := strings.Repeat(strconv.Itoa(i), 32)
		w.keys = append(w.keys, value)
		keys = append(keys, settings.Key{Name: value, Hash: sha256.Sum256([]byte(value)), Scopes: settings.ScopeStatus, Test: i < 2})
	}
	s.Keys = settings.NewKeys(keys...)
	w.current = func() *settings.Settings { return &s }
	w.address = w.startAPI(t)
	return w
}

// createCode stores a request and returns its code.
func (w *crowd) createCode(t *testing.T, ofTests bool) verification.Code {
	t.Helper()
	number, err := phone.FromE164("+4915112345678")
	w.Expect(err).NotTo(HaveOccurred())
	code, err := w.project.NewCode(rand.Reader)
	w.Expect(err).NotTo(HaveOccurred())
	_, err = w.store.Create(t.Context(), verification.New{
		ID: w.project.RequestID(code), Phone: number, Method: verification.WhatsApp, TTL: 10 * time.Minute, Test: ofTests,
	}, verification.Limits{})
	w.Expect(err).NotTo(HaveOccurred())
	return code
}

// sendRaw sends a request on a connection of its own, which the server closes after the answer.
func (w *crowd) sendRaw(t *testing.T, path, header string) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", w.address)
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"+header+"\r\n")
	w.Expect(err).NotTo(HaveOccurred())
	w.sent++
	go func() {
		_, _ = io.Copy(io.Discard, conn)
		w.answered.Add(1)
	}()
}

// expectHeld waits until as many requests are held, and all others were answered.
func (w *crowd) expectHeld(waits, pages int) {
	w.Eventually(w.answered.Load).WithTimeout(time.Minute).Should(BeEquivalentTo(w.sent - waits - pages))
	w.Eventually(w.readMetric).WithArguments("phoneproof_http_long_polls").WithTimeout(time.Minute).Should(BeEquivalentTo(waits))
	w.Eventually(w.readMetric).WithArguments("phoneproof_pages_following").WithTimeout(time.Minute).Should(BeEquivalentTo(pages))
}

// readStatuses makes short calls, each on a connection of its own.
func (w *crowd) readStatuses(t *testing.T, keys []string, id string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for range 5 {
		for _, key := range keys {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+w.address+"/api/verify/status?id="+id, nil)
			w.Expect(err).NotTo(HaveOccurred())
			request.Header.Set("Authorization", "Bearer "+key)
			response, err := client.Do(request)
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(response.Body.Close()).To(Succeed())
			w.Expect(response.StatusCode).To(Equal(http.StatusOK))
		}
	}
}

// readMetric returns the value of a gauge or a counter of the server.
func (w *crowd) readMetric(name string) float64 {
	families, err := w.registry.Gather()
	w.Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetGauge().GetValue() + family.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return -1
}

// startAPI serves the API until the test ends, and returns its address.
func (w *testServer) startAPI(t *testing.T) string {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	w.Expect(err).NotTo(HaveOccurred())
	api, err := w.newAPI(listener, &channels{service: verification.NewService(w.project, w.store)})
	w.Expect(err).NotTo(HaveOccurred())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- api.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		NewWithT(t).Eventually(ended).WithTimeout(time.Minute).Should(Receive(BeNil()))
	})
	return listener.Addr().String()
}
