package kubernetes

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// wiretap stands between a store and the API server: it counts calls by verb and, where asked to, spoils them.
type wiretap struct {
	mu    sync.Mutex
	calls map[string]int
	// spoil decides about a call; nil lets it through. forward makes it.
	spoil func(verb string, r *http.Request, forward func() (*http.Response, error)) (*http.Response, error)
	gate  *gate
	// watches are the streams of informers.
	watches []io.Closer
}

// hangUp ends the watches of informers.
func (w *wiretap) hangUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, stream := range w.watches {
		_ = stream.Close()
	}
	w.watches = nil
}

// config is the server's, tapped.
func (w *wiretap) config() *rest.Config {
	config := rest.CopyConfig(server)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) { return w.roundTrip(next, r) })
	})
	return config
}

func (w *wiretap) roundTrip(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	verb := verbOf(r)
	w.mu.Lock()
	if w.calls == nil {
		w.calls = make(map[string]int)
	}
	w.calls[verb]++
	spoil, gate := w.spoil, w.gate
	w.mu.Unlock()
	forward := func() (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err == nil && verb == "informer" && gate != nil {
			response.Body = &gated{ReadCloser: response.Body, gate: gate}
			w.mu.Lock()
			w.watches = append(w.watches, response.Body)
			w.mu.Unlock()
		}
		return response, err
	}
	if spoil != nil {
		return spoil(verb, r, forward)
	}
	return forward()
}

// set changes how calls are spoiled from now on.
func (w *wiretap) set(spoil func(verb string, r *http.Request, forward func() (*http.Response, error)) (*http.Response, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spoil = spoil
}

// take returns the calls since the last take.
func (w *wiretap) take() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := w.calls
	w.calls = nil
	return calls
}

// verbOf names a call as the API server's audit log does, and those of an informer by its name.
func verbOf(r *http.Request) string {
	named, query := !strings.HasSuffix(r.URL.Path, "/"+resourceName), r.URL.Query()
	switch {
	case r.Method == http.MethodGet && query.Get("watch") != "":
		return "informer"
	case r.Method == http.MethodGet && (query.Has("limit") || query.Get("resourceVersion") == "0"):
		return "list of informer"
	case r.Method == http.MethodGet && named:
		return "get"
	case r.Method == http.MethodGet:
		return "list"
	default:
		return map[string]string{
			http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
		}[r.Method]
	}
}

// gate holds the news of a watch back while it is shut.
type gate struct {
	mu   sync.Mutex
	open chan struct{}
}

func (g *gate) shut() (reopen func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	open := make(chan struct{})
	g.open = open
	return sync.OnceFunc(func() {
		g.mu.Lock()
		g.open = nil
		g.mu.Unlock()
		close(open)
	})
}

func (g *gate) wait() {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	if open != nil {
		<-open
	}
}

type gated struct {
	io.ReadCloser

	gate *gate
}

func (g *gated) Read(p []byte) (int, error) {
	n, err := g.ReadCloser.Read(p)
	g.gate.wait()
	return n, err
}

// answer is what the API server would have answered.
func answer(r *http.Request, code int, body string, headers ...string) *http.Response {
	response := &http.Response{
		StatusCode: code, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewBufferString(body)), ProtoMajor: 2,
	}
	for i := 0; i+1 < len(headers); i += 2 {
		response.Header.Set(headers[i], headers[i+1])
	}
	return response
}

var errLost = errors.New("the answer was lost")

// lose makes a call and loses its answer.
func lose(forward func() (*http.Response, error)) (*http.Response, error) {
	response, err := forward()
	if err == nil {
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
	return nil, errLost
}
