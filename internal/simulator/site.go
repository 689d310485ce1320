package simulator

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// apiName is what faults call the verification API.
const apiName = "api"

// ownCall is the header of the page's own calls of the verification API, which meet no fault: those are for a site.
const ownCall = "Phoneproof-Simulator-Page"

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
		operation, _, _ := strings.Cut(path, "/")
		var f *fault
		if found && r.Header.Get(ownCall) == "" {
			s.mu.Lock()
			f = s.faultFor(apiName, operation)
			s.mu.Unlock()
		}
		switch {
		case f != nil:
			f.answerForAPI(w)
		case operation == "init":
			b := &buffered{ResponseWriter: w, status: http.StatusOK}
			api.ServeHTTP(b, r)
			s.noteSiteRequest(b.body)
			b.send()
		default:
			api.ServeHTTP(w, r)
		}
	})
}

// answerForAPI answers as the API does where it has an error for the status, and else as a proxy in front of it.
func (f *fault) answerForAPI(w http.ResponseWriter) {
	code := map[int]string{429: "rate_limited", 500: "internal", 503: "store_unavailable"}[f.Status]
	if code == "" {
		http.Error(w, http.StatusText(f.Status), f.Status)
		return
	}
	if f.Status != http.StatusInternalServerError {
		w.Header().Set("Retry-After", strconv.Itoa(max(1, f.RetryAfter)))
	}
	answerFailure(w, &failure{f.Status, code, "", "this answer was asked for with POST /sim/faults"})
}

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
