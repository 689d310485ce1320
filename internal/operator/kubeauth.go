package operator

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/phoneproof/phoneproof/internal/tokenbucket"
)

// guardOptions are what a guard is made of.
type guardOptions struct {
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

// guard serves a path only to those whom the API server knows and allows to GET it.
//
// It asks what controller-runtime's metrics/filters ask, a TokenReview and a SubjectAccessReview, without k8s.io/apiserver,
// which would double the program. Decisions are remembered, so that a scrape costs the API server next to nothing, and questions
// about tokens of strangers are bounded, for each address and in all. A token that was allowed stays known for an hour: asking
// about it again is not bounded by what strangers do.
type guard struct {
	guardOptions

	decisions *decisions
	callers   *tokenbucket.Limiter[netip.Prefix]
	// reviews and renewals are those at once, of strangers and of known tokens.
	reviews, renewals chan struct{}
}

// newGuard returns a guard without a memory of decisions.
func newGuard(o guardOptions) *guard {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &guard{
		guardOptions: o, decisions: newDecisions(o.Clock), callers: tokenbucket.NewLimiter[netip.Prefix](maxCallers),
		reviews: make(chan struct{}, maxReviews), renewals: make(chan struct{}, maxReviews),
	}
}

// ServeHTTP answers 401 without a token that the API server knows, 403 if its holder may not, 429 if it is one of too many unknown
// tokens, and 503 if the API server does not answer.
func (h *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		writeRefusal(w, http.StatusMethodNotAllowed)
		return
	}
	token, ok := bearerToken(r.Header)
	if !ok {
		writeRefusal(w, http.StatusUnauthorized)
		return
	}
	if status := h.judgeToken(r.Context(), r.RemoteAddr, token); status != http.StatusOK {
		writeRefusal(w, status)
		return
	}
	h.Next.ServeHTTP(w, r)
}

func writeRefusal(w http.ResponseWriter, status int) {
	switch status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "1")
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

// judgeToken returns the status for a token, which is 200 if its holder may.
func (h *guard) judgeToken(ctx context.Context, address, token string) int {
	key := tokenKey(sha256.Sum256([]byte(token)))
	status, known := h.decisions.find(key)
	switch {
	case status != 0:
		return status
	case known:
		return h.askOnce(ctx, h.renewals, key, token)
	case !h.takeReview(address):
		return http.StatusTooManyRequests
	default:
		return h.askOnce(ctx, h.reviews, key, token)
	}
}

// askOnce asks the API server about a token, in its turn, and keeps the answer.
func (h *guard) askOnce(ctx context.Context, turns chan struct{}, key tokenKey, token string) int {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	select {
	case turns <- struct{}{}:
		defer func() { <-turns }()
	case <-ctx.Done():
		return http.StatusServiceUnavailable
	}
	if status, _ := h.decisions.find(key); status != 0 { // while this one waited
		return status
	}
	status, err := h.reviewToken(ctx, token)
	if err != nil {
		h.Log.Error(err, "authentication failed", "path", h.Path)
		return http.StatusServiceUnavailable
	}
	h.decisions.store(key, status)
	return status
}

// reviewToken asks the API server who the token's holder is, and whether they may.
func (h *guard) reviewToken(ctx context.Context, token string) (int, error) {
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
