package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/boundedhttp"
	"github.com/phoneproof/phoneproof/internal/httpapi"
	"github.com/phoneproof/phoneproof/internal/page"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// TestAPI_isNotKeptOutByPages holds as many long polls as a small process permits, of pages and of a backend. Together they are more than
// its connections.
func TestAPI_isNotKeptOutByPages(t *testing.T) {
	const connections = 32
	w := newTestServer(t)
	w.dependencies.ConnectionBudget = connections * boundedhttp.ConnectionCost
	withPage := *w.current()
	withPage.BaseURL, withPage.Page = "https://verify.example", &settings.Page{}
	withPage.WhatsApp = &settings.WhatsApp{AppSecret: settings.NewSecret([]byte("an app secret")), PhoneNumber: "+15550100100"}
	w.current = func() *settings.Settings { return &withPage }
	address := w.startAPI(t)
	places, polls := maxFollowers(w.dependencies.ConnectionBudget), httpapi.MaxWaits(w.apiBudget())
	w.Expect(places + polls).To(BeNumerically(">", w.apiBudget()/boundedhttp.ConnectionCost))

	for range places {
		w.sendRaw(t, address, w.createPage(t)+"/state?since=ready")
	}
	w.Eventually(w.readGauge).WithArguments("phoneproof_pages_following").WithTimeout(time.Minute).Should(BeEquivalentTo(places))
	id := w.createRequest(t).ID
	for range polls {
		w.sendRaw(t, address, "/api/verify/status?wait=30s&id="+id)
	}
	w.Eventually(w.readGauge).WithArguments("phoneproof_http_long_polls").WithTimeout(time.Minute).Should(BeEquivalentTo(polls))
	w.Eventually(w.readGauge).WithArguments("phoneproof_pages_following").WithTimeout(time.Minute).Should(BeNumerically("<", places))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for range 2 * connections {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/api/verify/status?id="+id, nil)
		w.Expect(err).NotTo(HaveOccurred())
		request.Header.Set("Authorization", "Bearer "+apiKey)
		response, err := client.Do(request)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(response.Body.Close()).To(Succeed())
		w.Expect(response.StatusCode).To(Equal(http.StatusOK))
	}
	w.Expect(w.readGauge("phoneproof_http_long_polls")).To(BeEquivalentTo(polls), "those of the backend stay")
}

// createPage stores a request and returns the path of its page.
func (w *testServer) createPage(t *testing.T) string {
	t.Helper()
	number, err := phone.FromE164("+4915112345678")
	w.Expect(err).NotTo(HaveOccurred())
	code, err := w.project.NewCode(rand.Reader)
	w.Expect(err).NotTo(HaveOccurred())
	_, err = w.store.Create(t.Context(), verification.New{
		ID: w.project.RequestID(code), Phone: number, Method: verification.WhatsApp, TTL: 10 * time.Minute,
	}, verification.Limits{})
	w.Expect(err).NotTo(HaveOccurred())
	at, err := url.Parse(page.URL(w.current(), verification.WhatsApp, code, time.Now()))
	w.Expect(err).NotTo(HaveOccurred())
	return at.Path
}

// sendRaw sends a request on a connection that stays open, and reads no answer.
func (w *testServer) sendRaw(t *testing.T, address, path string) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, fmt.Sprintf("GET %s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n", path, apiKey))
	w.Expect(err).NotTo(HaveOccurred())
}

// readGauge returns the value of a gauge of the server.
func (w *testServer) readGauge(name string) float64 {
	families, err := w.registry.Gather()
	w.Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetGauge().GetValue()
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
	api, err := w.newAPI(listener, verification.NewService(w.project, w.store), nil)
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
