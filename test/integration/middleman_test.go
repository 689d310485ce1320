package integration_test

import (
	"encoding/pem"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/phoneproof/phoneproof/test/controlplane"
)

// countingProxy is a proxy between replicas and the API server. It forwards calls with the callers' own tokens, except for those
// that it is set to answer itself, and can hold back the events of watches.
type countingProxy struct {
	calls atomic.Int64

	mu     sync.Mutex
	counts callCounts // of calls that were forwarded and not refused
	lost   callCounts // of calls that were forwarded and ended without an answer
	answer func(w http.ResponseWriter, r *http.Request) bool
	held   chan struct{}
}

// callCounts are numbers of calls by resource and verb.
type callCounts map[string]map[string]int

// addCall counts one more call.
func (c callCounts) addCall(resource, verb string) {
	if c[resource] == nil {
		c[resource] = map[string]int{}
	}
	c[resource][verb]++
}

// startProxy makes replicas that start from now on reach the API server through a proxy.
func (s *shop) startProxy() *countingProxy {
	GinkgoHelper()
	config := rest.AnonymousClientConfig(s.config)
	transport, err := rest.TransportFor(config)
	Expect(err).NotTo(HaveOccurred())
	address, _, err := rest.DefaultServerUrlFor(config)
	Expect(err).NotTo(HaveOccurred())
	m := &countingProxy{counts: callCounts{}, lost: callCounts{}}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "https", Host: address.Host}) },
		Transport:     transport,
		FlushInterval: -1,
		ModifyResponse: func(response *http.Response) error {
			m.countCall(response)
			if isInformerWatch(response.Request) {
				response.Body = &heldBody{ReadCloser: response.Body, by: m, closed: make(chan struct{})}
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, _ error) {
			m.countLost(r)
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.calls.Add(1)
		m.mu.Lock()
		answer := m.answer
		m.mu.Unlock()
		if answer == nil || !answer(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	DeferCleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	config.Host, config.BearerToken = server.URL, s.token
	config.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	s.kubeconfig = filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(controlplane.WriteKubeconfig(s.kubeconfig, config)).To(Succeed())
	return m
}

// countCall counts a call by its answer. Refused writes are not counted, except those of a status, whose attempts count.
func (m *countingProxy) countCall(response *http.Response) {
	resource, verb, counts := describeCall(response.Request)
	isWrite := response.Request.Method != http.MethodGet && !strings.HasPrefix(resource, "verificationprojects/")
	if !counts || isWrite && response.StatusCode > 299 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts.addCall(resource, verb)
}

// countLost counts a call that ended without an answer.
func (m *countingProxy) countLost(r *http.Request) {
	resource, verb, counts := describeCall(r)
	if !counts {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost.addCall(resource, verb)
}

// describeCall returns what a call does to which resource, and whether it counts. Checks of readiness do not: there are more of them, the
// longer a spec takes.
func describeCall(r *http.Request) (resource, verb string, counts bool) {
	// The path is /apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE[/NAME[/SUBRESOURCE]].
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/apis/"), "/")
	if len(parts) < 5 || len(parts) == 6 && parts[5] == "phoneproof-ready" {
		return "", "", false
	}
	resource, verb = parts[4], r.Method
	switch {
	case len(parts) > 6 && resource == "verificationprojects":
		resource += "/" + parts[6]
	case verb == http.MethodGet && len(parts) == 5 && r.URL.Query().Get("watch") == "":
		verb = "LIST"
	case verb == http.MethodGet && len(parts) == 5:
		verb = "WATCH"
	}
	return resource, verb, true
}

// callsOf returns the number of calls about a resource so far, by verb.
func (m *countingProxy) callsOf(resource string) map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.counts[resource])
}

// lostCallsOf returns the number of calls about a resource that ended without an answer so far, by verb.
func (m *countingProxy) lostCallsOf(resource string) map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.lost[resource])
}

// answerWith answers the calls that answer handles, and forwards all others. Nil forwards everything.
func (m *countingProxy) answerWith(answer func(w http.ResponseWriter, r *http.Request) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answer = answer
}

// holdWatches holds back the events of watches of requests, until release.
func (m *countingProxy) holdWatches() (release func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	held := make(chan struct{})
	m.held = held
	return sync.OnceFunc(func() {
		m.mu.Lock()
		m.held = nil
		m.mu.Unlock()
		close(held)
	})
}

// isInformerWatch reports whether a watch keeps a cache up to date, unlike a read that is made as a watch and ends at once.
func isInformerWatch(r *http.Request) bool {
	query := r.URL.Query()
	return query.Get("watch") != "" && len(query.Get("timeoutSeconds")) > 1 && strings.HasSuffix(r.URL.Path, "/verificationrequests")
}

// heldBody is the body of a watch.
type heldBody struct {
	io.ReadCloser

	by     *countingProxy
	once   sync.Once
	closed chan struct{}
}

// Read returns the received bytes, but not while they are held back.
func (b *heldBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.by.mu.Lock()
	held := b.by.held
	b.by.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-b.closed:
		}
	}
	return n, err
}

// Close ends the stream.
func (b *heldBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.ReadCloser.Close()
}

// refuseLeases refuses every call about leases.
func (m *countingProxy) refuseLeases() {
	m.answerWith(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/leases") {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
}

// fakeLease makes the proxy keep a lease of its own, which its clients hold regardless of the API server's lease.
func (m *countingProxy) fakeLease() {
	var mu sync.Mutex
	var lease []byte
	contentType := "application/json"
	m.answerWith(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/leases") {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		if body, err := io.ReadAll(r.Body); err == nil && len(body) > 0 {
			lease, contentType = body, r.Header.Get("Content-Type")
		}
		w.Header().Set("Content-Type", contentType)
		if lease == nil {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
			return true
		}
		_, _ = w.Write(lease)
		return true
	})
}
