package httpapi

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// waitLimiter limits the long polls that are held, in all and by the name of their key.
type waitLimiter struct {
	most int

	mu    sync.Mutex
	total int
	byKey map[string]int
}

// enter takes a place, if there is one.
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

// leave gives the place back.
func (w *waitLimiter) release(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.total--
	if w.byKey[key]--; w.byKey[key] == 0 {
		delete(w.byKey, key) // Keys come and go; their names must not stay.
	}
}

// await returns the request when it is no longer PENDING, when the time is up, or when the server drains. It
// subscribes before it reads, so no change falls between the two, and it reads once more at the end of the time, so a
// store that learns of changes late is no staler than an ordinary read.
func (x *exchange) waitForChange(query statusQuery) (verification.Request, error) {
	// The deadline for reading the request would otherwise end the wait as if the client had gone away, because
	// net/http keeps reading in order to notice that. It sets the deadline anew for the next request.
	http.NewResponseController(x.w).SetReadDeadline(time.Time{}) //nolint:errcheck // not a connection, so no deadline

	changes, cancel := x.api.service.Subscribe(query.id)
	defer cancel()
	draining := drainingOf(x.r.Context())
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
		if expires := request.ExpiresAt.Add(verification.ExpiryGrace); expires.Before(next) {
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

// drainKey finds, in a request's context, the channel that is closed when the server drains. A value in the context
// reaches the long polls through whatever handlers are put around the API.
type drainKey struct{}

func withDraining(ctx context.Context, draining <-chan struct{}) context.Context {
	return context.WithValue(ctx, drainKey{}, draining)
}

// drainingOf returns nil, which never fires, under a server that is not ours.
func drainingOf(ctx context.Context) <-chan struct{} {
	draining, _ := ctx.Value(drainKey{}).(<-chan struct{})
	return draining
}
