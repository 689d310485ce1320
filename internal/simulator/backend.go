package simulator

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"
)

// Backend is the verification API that the page may call in the place of a client backend.
type Backend struct {
	// URL is the base URL of the API.
	URL string
	// Key returns an API key. The page never sees it.
	Key func() string
}

var backendClient = &http.Client{
	Timeout:       maxWait + 10*time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// registerRoutes serves the two operations of the API to the page; without a backend it answers that there is none.
func (b *Backend) registerRoutes(mux *http.ServeMux) {
	mux.HandleFunc("POST /backend/init", func(w http.ResponseWriter, r *http.Request) {
		b.forwardRequest(w, r, http.MethodPost, "/api/verify/init")
	})
	mux.HandleFunc("GET /backend/status", func(w http.ResponseWriter, r *http.Request) {
		b.forwardRequest(w, r, http.MethodGet, "/api/verify/status?"+r.URL.RawQuery)
	})
}

func (b *Backend) forwardRequest(w http.ResponseWriter, r *http.Request, method, path string) {
	if b == nil {
		answerFailure(w, &failure{http.StatusNotFound, "no_backend", "", "no verification API is set: start verifications yourself"})
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), backendClient.Timeout)
	defer cancel()
	body := http.MaxBytesReader(w, r.Body, maxRequestBytes)
	//nolint:gosec // the URL is an option of the process, its paths are the two above
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(b.URL, "/")+path, body)
	if err != nil {
		answerFailure(w, badRequest("", "the request cannot be made"))
		return
	}
	request.Header.Set("Authorization", "Bearer "+b.Key())
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(ownCall, "true")
	response, err := backendClient.Do(request) //nolint:gosec // as above
	if err != nil {
		answerFailure(w, &failure{http.StatusBadGateway, "no_answer", "", "the verification API does not answer: " + describeError(err)})
		return
	}
	defer response.Body.Close()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(response.StatusCode)
	_, _ = io.Copy(w, io.LimitReader(response.Body, maxAnswerBytes)) // the status says it all
}
