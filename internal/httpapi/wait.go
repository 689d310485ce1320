package httpapi

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/phoneproof/phoneproof/internal/boundedhttp"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// waitLimiter shares what a server may hold between the long polls of its keys. It counts connections.
type waitLimiter struct {
	holds *boundedhttp.HoldLimiter

	mu    sync.Mutex
	byKey map[string]int
	tests int // of all test keys
}

// acquire returns the slot of a long poll that counts as that many connections; nil if none is free. Those of test keys yield to others.
func (w *waitLimiter) acquire(key settings.Key, connections int) *boundedhttp.Hold {
	w.mu.Lock()
	defer w.mu.Unlock()
	perKey, forTests := min(maxWaitsPerKey, max(1, w.holds.Most()/keyShare)), max(1, w.holds.Most()/testShare)
	if w.byKey[key.Name]+connections > perKey || key.Test && w.tests+connections > forTests {
		return nil
	}
	hold := w.holds.Acquire(connections, key.Test)
	if hold == nil {
		return nil
	}
	if w.byKey == nil {
		w.byKey = make(map[string]int)
	}
	w.count(key, connections)
	return hold
}

// release frees a slot.
func (w *waitLimiter) release(key settings.Key, connections int, hold *boundedhttp.Hold) {
	hold.Release()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count(key, -connections)
	if w.byKey[key.Name] == 0 {
		delete(w.byKey, key.Name) // The names of removed keys must not use memory.
	}
}

func (w *waitLimiter) count(key settings.Key, connections int) {
	w.byKey[key.Name] += connections
	if key.Test {
		w.tests += connections
	}
}

// waitForChange returns the request when it is no longer PENDING, when the time is up, when the slot is lost, or when the server
// drains. It subscribes before it reads, so that no change is missed, and reads again at the end, so that a store that is notified of
// changes late returns the same as an ordinary read.
func (x *exchange) waitForChange(query statusQuery, hold *boundedhttp.Hold) (verification.Request, error) {
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
		case <-hold.Lost():
			timer.Stop()
			return request, nil
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
