package whatsapp

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
)

// seenCall is what the Graph API was asked.
type seenCall struct {
	Method, URI, Authorization, UserAgent string
	Body                                  string
}

// text returns the text of a message.
func (c seenCall) text() string {
	var m outgoing
	_ = json.Unmarshal([]byte(c.Body), &m)
	switch {
	case m.Text != nil:
		return m.Text.Body
	case m.Interactive != nil:
		return m.Interactive.Body.Text
	default:
		return ""
	}
}

// graph is a Graph API that gives the answers that it was set to.
type graph struct {
	*httptest.Server

	mu     sync.Mutex
	calls  []seenCall
	status int
	answer []byte
	with   func(query url.Values) string // instead of answer, if it is not nil
	header http.Header
}

func newGraph(t testing.TB) *graph {
	t.Helper()
	g := &graph{status: http.StatusOK, answer: []byte(`{"messaging_product":"whatsapp","messages":[{"id":"wamid.1"}]}`)}
	g.Server = httptest.NewServer(g)
	t.Cleanup(g.Close)
	return g
}

func (g *graph) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls = append(g.calls, seenCall{r.Method, r.URL.RequestURI(), r.Header.Get("Authorization"), r.UserAgent(), string(body)})
	maps.Copy(w.Header(), g.header)
	w.WriteHeader(g.status)
	if g.with != nil {
		_, _ = io.WriteString(w, g.with(r.URL.Query()))
		return
	}
	_, _ = w.Write(g.answer)
}

func (g *graph) answers(status int, answer []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.status, g.answer, g.with = status, answer, nil
}

// answersWith has the answers depend on the query.
func (g *graph) answersWith(with func(query url.Values) string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.status, g.with = http.StatusOK, with
}

func (g *graph) all() []seenCall {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]seenCall(nil), g.calls...)
}

// discarding is a transport that takes everything.
type discarding struct{}

func (discarding) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader([]byte("{}"))), Request: r}, nil
}
