package simulator

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// apiName is what faults call the verification API.
const apiName = "api"

// ownCall is the header of the page's own calls of the verification API, which meet no fault: those are for a site.
const ownCall = "PhoneProof-Simulator-Page"

// siteRequest is a verification that was begun at the API, as init answered it.
type siteRequest struct {
	RequestID string `json:"requestId"`
	WALink    string `json:"waLink,omitempty"`
	TGLink    string `json:"tgLink,omitempty"`
	PageURL   string `json:"pageURL,omitempty"`
}

// WrapAPI returns the verification API with the faults of POST /sim/faults, and lists the verifications that are begun there.
func (s *Simulator) WrapAPI(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, path, found := strings.Cut(r.URL.Path, "/api/verify/")
		if !found {
			api.ServeHTTP(w, r)
			return
		}
		operation, _, _ := strings.Cut(path, "/")
		if r.Header.Get(ownCall) == "" {
			s.mu.Lock()
			f := s.faultFor(apiName, operation)
			s.mu.Unlock()
			if f != nil {
				f.answerForAPI(w)
				return
			}
		}
		if operation != "init" {
			api.ServeHTTP(w, r)
			return
		}
		answer := &answerRecorder{ResponseWriter: w}
		api.ServeHTTP(answer, r)
		s.noteSiteRequest(answer.body)
	})
}

// answerForAPI answers as the API does where it has an error for the status, and else as a proxy in front of it.
func (f *fault) answerForAPI(w http.ResponseWriter) {
	codes := map[int]string{
		http.StatusTooManyRequests:     "rate_limited",
		http.StatusInternalServerError: "internal",
		http.StatusServiceUnavailable:  "store_unavailable",
	}
	code, known := codes[f.Status]
	if !known {
		http.Error(w, http.StatusText(f.Status), f.Status)
		return
	}
	if f.Status != http.StatusInternalServerError {
		w.Header().Set("Retry-After", strconv.Itoa(max(1, f.RetryAfter)))
	}
	w.Header().Set("X-Request-Id", rand.Text())
	w.Header().Set("Phoneproof-Simulated", "true")
	answerJSON(w, f.Status, map[string]any{"error": map[string]string{
		"code": code, "message": "This answer was asked for with POST /sim/faults.",
	}})
}

// answerRecorder keeps a copy of an answer.
type answerRecorder struct {
	http.ResponseWriter

	body []byte
}

// Write keeps what it writes.
func (a *answerRecorder) Write(p []byte) (int, error) {
	a.body = append(a.body, p...)
	return a.ResponseWriter.Write(p) //nolint:wrapcheck // as a ResponseWriter does
}

// Unwrap gives http.ResponseController access to the connection.
func (a *answerRecorder) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// noteSiteRequest lists the verification of an answer to init, once. That of a test key has no link, and so no phone.
func (h *hub) noteSiteRequest(answer []byte) {
	var begun siteRequest
	if json.Unmarshal(answer, &begun) != nil || begun.WALink+begun.TGLink == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Contains(h.requests, begun) {
		h.requests = appendBounded(h.requests, begun, maxSiteRequests)
		h.publish(event{Type: "request"})
	}
}
