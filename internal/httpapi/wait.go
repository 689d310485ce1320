package httpapi

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// waitLimiter limits the long polls held at once, in total and by the name of their key.
type waitLimiter struct {
	most int

	mu    sync.Mutex
	total int
	byKey map[string]int
}

// acquire takes a slot, and reports whether one was free.
func (w *waitLimiter) acquire(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.total >= w.most || w.byKey[key] >= maxWaitsPerKey {
		return false
	}
	if w.byKey == nil {
		w.byKey = make(map[string]int)
	}
	w.total++
	w.byKey[key]++
	return true
}

// release frees a slot.
func (w *waitLimiter) release(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.total--
	if w.byKey[key]--; w.byKey[key] == 0 {
		delete(w.byKey, key) // The names of removed keys must not use memory.
	}
}

// waitForChange returns the request when it is no longer PENDING, when the time is up, or when the server drains. It
// subscribes before it reads, so that no change is missed, and reads again at the end, so that a store that is notified of
// changes late returns the same as an ordinary read.
func (x *exchange) waitForChange(query statusQuery) (verification.Request, error) {
	// net/http keeps reading in order to notice a client that disconnects, so the read deadline would end the wait as if
	// the client had done so. net/http sets a new deadline for the next request.
	http.NewResponseController(x.w).SetReadDeadline(time.Time{}) //nolint:errcheck // fails without a connection only

	changes, cancel := x.api.service.Subscribe(query.id)
	defer cancel()
	draining := Draining(x.r.Context())
	end := x.start.Add(query.wait)
	for {
		request, err := x.readRequest(query.id)
		if err != nil {
			return verification.Request{}, err
		}
		now := x.api.clock.Now()
		if request.PhaseAt(now).Final() || !now.Before(end) {
			return request, nil
		}
		next := end
		if expires := request.EndsAt().Add(verification.ExpiryGrace); expires.Before(next) {
			next = expires
		}
		timer := x.api.clock.NewTimer(next.Sub(now))
		select {
		case <-changes:
		case <-timer.C():
		case <-draining:
			timer.Stop()
			return request, nil
		case <-x.r.Context().Done():
			timer.Stop()
			return verification.Request{}, errClientGone
		}
		timer.Stop()
	}
}

// drainKey is the context key of the channel that is closed when the server drains. A context value reaches the long polls
// through any handlers around the API.
type drainKey struct{}

func withDraining(ctx context.Context, draining <-chan struct{}) context.Context {
	return context.WithValue(ctx, drainKey{}, draining)
}

// Draining returns the channel that is closed when the server drains; nil, which blocks forever, under any other server.
func Draining(ctx context.Context) <-chan struct{} {
	draining, _ := ctx.Value(drainKey{}).(<-chan struct{})
	return draining
}
