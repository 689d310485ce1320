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

// middleman stands between replicas and the API server. He passes everything on, with the callers' own tokens, but what
// he is told to answer himself, and may hold back what watches bring.
type middleman struct {
	calls atomic.Int64

	mu     sync.Mutex
	counts map[string]map[string]int // by resource and verb, of what was passed on and not refused
	answer func(w http.ResponseWriter, r *http.Request) bool
	held   chan struct{}
}

// middleman has the replicas that start from now on reach the API server through one.
func (s *shop) middleman() *middleman {
	GinkgoHelper()
	config := rest.AnonymousClientConfig(s.config)
	transport, err := rest.TransportFor(config)
	Expect(err).NotTo(HaveOccurred())
	address, _, err := rest.DefaultServerUrlFor(config)
	Expect(err).NotTo(HaveOccurred())
	m := &middleman{counts: map[string]map[string]int{}}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "https", Host: address.Host}) },
		Transport:     transport,
		FlushInterval: -1,
		ModifyResponse: func(response *http.Response) error {
			m.count(response)
			if informs(response.Request) {
				response.Body = &heldBody{ReadCloser: response.Body, by: m, closed: make(chan struct{})}
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
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

// count notes an answer of the API server. A write that is refused writes nothing, except to a status, whose attempts count.
func (m *middleman) count(response *http.Response) {
	// As /apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE[/NAME[/SUBRESOURCE]].
	parts := strings.Split(strings.TrimPrefix(response.Request.URL.Path, "/apis/"), "/")
	if len(parts) < 5 {
		return
	}
	resource, verb := parts[4], response.Request.Method
	switch {
	case len(parts) > 6 && resource == "verificationprojects":
		resource += "/" + parts[6]
	case verb != http.MethodGet && response.StatusCode > 299:
		return
	case verb == http.MethodGet && len(parts) == 5 && response.Request.URL.Query().Get("watch") == "":
		verb = "LIST"
	case verb == http.MethodGet && len(parts) == 5:
		verb = "WATCH"
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts[resource] == nil {
		m.counts[resource] = map[string]int{}
	}
	m.counts[resource][verb]++
}

// counted returns how often a resource was asked for so far, by verb.
func (m *middleman) counted(resource string) map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.counts[resource])
}

// answers has him answer what answer does, and pass on all else. Nil passes on everything.
func (m *middleman) answers(answer func(w http.ResponseWriter, r *http.Request) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answer = answer
}

// hold keeps back what the watches of requests bring, until release.
func (m *middleman) hold() (release func()) {
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

// informs tells a watch that keeps a memory up to date from one that is a question and ends at once.
func informs(r *http.Request) bool {
	query := r.URL.Query()
	return query.Get("watch") != "" && len(query.Get("timeoutSeconds")) > 1 && strings.HasSuffix(r.URL.Path, "/verificationrequests")
}

// heldBody is the stream of a watch.
type heldBody struct {
	io.ReadCloser

	by     *middleman
	once   sync.Once
	closed chan struct{}
}

// Read returns what came, but not while it is held back.
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

// refusesLeases has him refuse every call about leases.
func (m *middleman) refusesLeases() {
	m.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/leases") {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
}

// keepsALease has him keep a lease of his own, which those who come to him hold whatever the API server's says.
func (m *middleman) keepsALease() {
	var mu sync.Mutex
	var lease []byte
	contentType := "application/json"
	m.answers(func(w http.ResponseWriter, r *http.Request) bool {
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
