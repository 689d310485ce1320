package apiproxy

import (
	"net/http"
	"strings"
	"sync"
	"time"
)

// Unanswered is a call about one object that the API server itself did not answer: the client gave it up, or the response was 5xx.
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

// Unanswered returns the calls so far that the API server did not answer, without those that a fault of the proxy hit.
func (p *Proxy) Unanswered() []Unanswered {
	p.unanswered.mu.Lock()
	defer p.unanswered.mu.Unlock()
	return append([]Unanswered(nil), p.unanswered.list...)
}

// forwardCall forwards a call unchanged, and notes it if it is not answered.
func (p *Proxy) forwardCall(w http.ResponseWriter, r *http.Request) {
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

// splitPath returns the resource and the object of a path such as /apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE/OBJECT/status;
// both are empty if it names no object.
func splitPath(path string) (resource, object string) {
	const place = 6
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if len(parts) <= place || parts[0] != "apis" {
		return "", ""
	}
	return parts[place-1], parts[place]
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
