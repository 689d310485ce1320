// Package kubeauth serves a path only to those whom the API server knows and allows to GET it.
//
// It asks what controller-runtime's metrics/filters ask, a TokenReview and a SubjectAccessReview, without k8s.io/apiserver,
// which would double the program. Decisions are remembered, so that a scrape costs the API server next to nothing.
package kubeauth

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

const (
	// allowedFor and refusedFor are how long a decision stands: a right that was taken away ends within the first.
	allowedFor = time.Minute
	refusedFor = 10 * time.Second
	// maxDecisions bounds the memory of decisions.
	maxDecisions = 256
	// maxReviews bounds the tokens that the API server is asked about at once, so that strangers who send any load it little.
	maxReviews = 4
	// reviewTimeout bounds the two questions about a token.
	reviewTimeout = 5 * time.Second
)

// Options are what a handler is made of.
type Options struct {
	// Clients ask the API server. Required.
	Clients kubernetes.Interface
	// Path is what must be allowed, such as /metrics. Required.
	Path string
	// Next serves those who are. Required.
	Next http.Handler
	// Log gets failures to ask.
	Log logr.Logger
	// Clock is this machine's; nil for the real one.
	Clock clock.PassiveClock
}

// Handler lets those pass who may.
type Handler struct {
	Options

	reviews chan struct{}

	mu        sync.Mutex
	decisions map[[sha256.Size]byte]decision
}

// decision is the status that a token gets for a while.
type decision struct {
	status int
	until  time.Time
}

// New returns a handler.
func New(o Options) *Handler {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Handler{
		Options: o, reviews: make(chan struct{}, maxReviews), decisions: make(map[[sha256.Size]byte]decision),
	}
}

// ServeHTTP answers 401 without a token that the API server knows, 403 if its holder may not, and 503 if that cannot be told.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		refuse(w, http.StatusMethodNotAllowed)
		return
	}
	token, ok := bearerToken(r.Header)
	if !ok {
		refuse(w, http.StatusUnauthorized)
		return
	}
	if status := h.decide(r.Context(), token); status != http.StatusOK {
		refuse(w, status)
		return
	}
	h.Next.ServeHTTP(w, r)
}

func refuse(w http.ResponseWriter, status int) {
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	http.Error(w, http.StatusText(status), status)
}

// bearerToken returns the token of a request that has exactly one.
func bearerToken(h http.Header) (string, bool) {
	values := h["Authorization"]
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	token = strings.TrimSpace(token)
	return token, ok && token != "" && strings.EqualFold(scheme, "Bearer")
}

// decide returns the status for a token, which is 200 if its holder may.
func (h *Handler) decide(ctx context.Context, token string) int {
	key := sha256.Sum256([]byte(token))
	if status := h.remembered(key); status != 0 {
		return status
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	select {
	case h.reviews <- struct{}{}:
		defer func() { <-h.reviews }()
	case <-ctx.Done():
		return http.StatusServiceUnavailable
	}
	if status := h.remembered(key); status != 0 { // while this one waited
		return status
	}
	status, err := h.review(ctx, token)
	if err != nil {
		h.Log.Error(err, "authentication failed", "path", h.Path)
		return http.StatusServiceUnavailable
	}
	h.remember(key, status)
	return status
}

// review asks the API server who the token's holder is, and whether they may.
func (h *Handler) review(ctx context.Context, token string) (int, error) {
	known, err := h.Clients.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("create TokenReview: %w", err)
	}
	if !known.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := known.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for name, values := range user.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	allowed, err := h.Clients.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: h.Path, Verb: "get"},
		},
	}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return 0, fmt.Errorf("create SubjectAccessReview: %w", err)
	case !allowed.Status.Allowed:
		return http.StatusForbidden, nil
	default:
		return http.StatusOK, nil
	}
}

// remembered returns zero for a token that was not judged lately.
func (h *Handler) remembered(key [sha256.Size]byte) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d, ok := h.decisions[key]; ok && h.Clock.Now().Before(d.until) {
		return d.status
	}
	return 0
}

// remember forgets refusals first if memory is full: strangers must not have the API server asked about others anew.
func (h *Handler) remember(key [sha256.Size]byte, status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.Clock.Now()
	if len(h.decisions) >= maxDecisions {
		for old, d := range h.decisions {
			if !now.Before(d.until) || d.status != http.StatusOK {
				delete(h.decisions, old)
			}
		}
	}
	if len(h.decisions) >= maxDecisions {
		return
	}
	period := refusedFor
	if status == http.StatusOK {
		period = allowedFor
	}
	h.decisions[key] = decision{status, now.Add(period)}
}
