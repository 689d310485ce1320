package sdk

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// front stands between a driver and the API: it records the calls, and answers those that a scenario names as it says.
type front struct {
	url   string
	proxy http.Handler
	left  chan struct{} // has a value for each client that closed its connection while it waited

	mu    sync.Mutex
	calls []call
	plans map[string]*plan // by operation
}

// call is a request that came.
type call struct {
	operation, target string // target is path and query
	header            http.Header
	body              []byte
	at                time.Time
}

// plan says how the calls of an operation are answered: the next ones by the moves, those after them by rest.
type plan struct {
	next []move
	rest move
}

// move answers a call. The handler is the API.
type move func(w http.ResponseWriter, r *http.Request, api http.Handler)

func startFront(tb testing.TB, api string) *front {
	tb.Helper()
	target, err := url.Parse(api)
	if err != nil {
		tb.Fatal(err)
	}
	f := &front{
		proxy: &httputil.ReverseProxy{
			Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target) },
			ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // a client that left
		},
		left: make(chan struct{}, 100),
	}
	f.reset()
	server := httptest.NewServer(f)
	tb.Cleanup(server.Close)
	f.url = server.URL
	return f
}

// reset forgets the calls and the plans.
func (f *front) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls, f.plans = nil, map[string]*plan{}
	for len(f.left) > 0 {
		<-f.left
	}
}

// next has the next calls of an operation answered by moves, and those after them by the API.
func (f *front) next(operation string, moves ...move) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plans[operation] = &plan{moves, pass}
}

// always has all calls of an operation answered by a move.
func (f *front) always(operation string, m move) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plans[operation] = &plan{nil, m}
}

// callsOf returns the calls of an operation: what follows /api/verify/ in the path, get for those of one request.
func (f *front) callsOf(operation string) (calls []call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.calls {
		if c.operation == operation {
			calls = append(calls, c)
		}
	}
	return calls
}

// operationOf names a path. The API may have one of its own before it.
func operationOf(path string) string {
	_, operation, found := strings.Cut(path, "/api/verify/")
	switch {
	case !found:
		return strings.TrimPrefix(path, "/")
	case strings.HasPrefix(operation, "requests/") && operation != "requests/find":
		return "get"
	default:
		return operation
	}
}

// ServeHTTP records a call and answers it.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client left
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	operation := operationOf(r.URL.Path)
	f.mu.Lock()
	f.calls = append(f.calls, call{operation, r.URL.RequestURI(), r.Header.Clone(), body, time.Now()})
	m := move(pass)
	if p := f.plans[operation]; p != nil && len(p.next) > 0 {
		m, p.next = p.next[0], p.next[1:]
	} else if p != nil {
		m = p.rest
	}
	f.mu.Unlock()
	defer func() {
		if r.Context().Err() != nil {
			f.left <- struct{}{}
		}
	}()
	http.StripPrefix(basePath(r.URL.Path), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m(w, r, f.proxy) })).ServeHTTP(w, r)
}

// basePath returns the path that a client has before those of the API.
func basePath(path string) string {
	before, _, _ := strings.Cut(path, "/api/verify/")
	if before == path {
		return ""
	}
	return before
}

// carryOut has the API carry a call out, and keeps the answer.
func carryOut(r *http.Request, api http.Handler) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	api.ServeHTTP(answer, r)
	return answer
}

func pass(w http.ResponseWriter, r *http.Request, api http.Handler) { api.ServeHTTP(w, r) }

// drop closes the connection before the API knows of the call.
func drop(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }

// lose closes the connection after the API carried the call out.
func lose(_ http.ResponseWriter, r *http.Request, api http.Handler) {
	carryOut(r, api)
	panic(http.ErrAbortHandler)
}

// hang answers nothing until the client leaves.
func hang(_ http.ResponseWriter, r *http.Request, _ http.Handler) { <-r.Context().Done() }

// answer answers in place of the API. Headers are names and values.
func answer(status int, contentType, body string, headers ...string) move {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", contentType)
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // the client may have left
	}
}

// refuse answers as the API does with an error.
func refuse(status int, code string, headers ...string) move {
	headers = append(headers, "X-Request-Id", "front-1")
	return answer(status, "application/json", `{"error":{"code":"`+code+`","message":"The front refuses."}}`, headers...)
}

// badGateway answers as proxies do.
var badGateway = answer(http.StatusBadGateway, "text/html", "<html><body><h1>502 Bad Gateway</h1></body></html>")

// carryOutAnd answers by another move after the API carried the call out.
func carryOutAnd(m move) move {
	return func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		carryOut(r, api)
		m(w, r, api)
	}
}

// change has the API answer, and changes the object that it answers.
func change(edit func(object map[string]any)) move {
	return func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		answer := carryOut(r, api)
		var object map[string]any
		if err := json.Unmarshal(answer.Body.Bytes(), &object); err != nil {
			panic(http.ErrAbortHandler)
		}
		edit(object)
		body, err := json.Marshal(object)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		maps.Copy(w.Header(), answer.Header())
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(answer.Code)
		_, _ = w.Write(body) // the client may have left
	}
}

// atOnce is an older server, which knows no wait, or one that holds too many calls already.
func atOnce(w http.ResponseWriter, r *http.Request, api http.Handler) {
	query := r.URL.Query()
	query.Del("wait")
	r.URL.RawQuery = query.Encode()
	api.ServeHTTP(w, r)
}
