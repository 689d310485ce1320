package apiproxy

import (
	"net/http"
	"sync"
	"time"
)

// Unanswered is a call about one object that was forwarded and not answered: the client gave it up, or the response was 5xx.
type Unanswered struct {
	// Client is the name of the caller; Resource and Object name what the call was about.
	Client, Resource, Object string
	From, Until              time.Time
}

// minUnanswered is how long a call takes at least to count as unanswered. A client that gives up earlier has reasons of its own.
const minUnanswered = time.Second

// unanswered collects calls.
type unanswered struct {
	mu   sync.Mutex
	list []Unanswered
}

// Unanswered returns the calls so far that were forwarded and not answered.
func (p *Proxy) Unanswered() []Unanswered {
	p.unanswered.mu.Lock()
	defer p.unanswered.mu.Unlock()
	return append([]Unanswered(nil), p.unanswered.list...)
}

// serveCall forwards a call unchanged, and notes it if it is not answered.
func (p *Proxy) serveCall(w http.ResponseWriter, r *http.Request) {
	resource, object := splitPath(r.URL.Path)
	if object == "" {
		p.pass.ServeHTTP(w, r)
		return
	}
	began, answer := time.Now(), &codeWriter{ResponseWriter: w}
	defer func() { // also when the connection is cut
		until := time.Now()
		answered := answer.code != 0 && answer.code < http.StatusInternalServerError && r.Context().Err() == nil
		if answered || until.Sub(began) < minUnanswered {
			return
		}
		call := Unanswered{Client: p.identify(r.RemoteAddr), Resource: resource, Object: object, From: began, Until: until}
		p.unanswered.mu.Lock()
		defer p.unanswered.mu.Unlock()
		p.unanswered.list = append(p.unanswered.list, call)
	}()
	p.pass.ServeHTTP(answer, r)
}

// codeWriter notes the status code of a response.
type codeWriter struct {
	http.ResponseWriter

	code int
}

// WriteHeader notes the code; 1xx are not the answer.
func (w *codeWriter) WriteHeader(code int) {
	if code >= http.StatusOK {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap lets the response be flushed.
func (w *codeWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
