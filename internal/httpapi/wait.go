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
	w.addConnections(key, connections)
	return hold
}

// release frees a slot.
func (w *waitLimiter) release(key settings.Key, connections int, hold *boundedhttp.Hold) {
	hold.Release()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addConnections(key, -connections)
	if w.byKey[key.Name] == 0 {
		delete(w.byKey, key.Name) // The names of removed keys must not use memory.
	}
}

// addConnections adds to what a key has, and all test keys together; a negative number takes away.
func (w *waitLimiter) addConnections(key settings.Key, connections int) {
	w.byKey[key.Name] += connections
	if key.Test {
		w.tests += connections
	}
}

// waitForChange returns the request when it is no longer PENDING, when its hint is news, when the time is up, when the slot is lost, or
// when the server drains, and whether it waited: not if the request is final already, or no slot is free. It subscribes before it reads,
// so that no change is missed, and reads again at the end, so that a store that is notified of changes late returns the same as an
// ordinary read.
func (x *exchange) waitForChange(key settings.Key, query statusQuery) (verification.Request, bool, error) {
	changes, cancel := x.api.service.Subscribe(query.id)
	defer cancel()
	end := x.start.Add(query.wait)
	request, err := x.readRequest(query.id)
	if err != nil || request.PhaseAt(x.api.clock.Now()).Final() {
		return request, false, err
	}
	noEarlier := x.start
	if query.hasNews(&request, x.api.clock.Now()) {
		noEarlier = x.start.Add(hintPause)
	}
	connections := boundedhttp.ConnectionsOf(x.r.Context())
	hold := x.api.waits.acquire(key, connections)
	if hold == nil {
		return request, false, nil
	}
	x.route = pathStatus + waitSuffix
	x.api.metrics.waits.Inc()
	defer func() {
		x.api.metrics.waits.Dec()
		x.api.waits.release(key, connections, hold)
	}()
	// net/http keeps reading in order to notice a client that disconnects, so the read deadline would end the wait as if
	// the client had done so. net/http sets a new deadline for the next request.
	http.NewResponseController(x.w).SetReadDeadline(time.Time{}) //nolint:errcheck // fails without a connection only
	for {
		now := x.api.clock.Now()
		news, until := query.hasNews(&request, now), end
		if news && noEarlier.Before(end) {
			until = noEarlier
		}
		if request.PhaseAt(now).Final() || !now.Before(until) {
			return request, true, nil
		}
		goOn, err := x.awaitChange(&request, changes, hold, now, until)
		if err != nil || !goOn {
			return request, true, err
		}
		if news && !x.api.clock.Now().Before(until) { // nothing changed in the pause, so it costs one read
			return request, true, nil
		}
		if request, err = x.readRequest(query.id); err != nil {
			return request, true, err
		}
	}
}

// awaitChange returns when the request may have changed or the time is up; it reports whether the wait goes on.
func (x *exchange) awaitChange(
	request *verification.Request, changes <-chan struct{}, hold *boundedhttp.Hold, now, end time.Time,
) (bool, error) {
	if expires := request.EndsAt().Add(verification.ExpiryGrace); expires.Before(end) {
		end = expires
	}
	timer := x.api.clock.NewTimer(end.Sub(now))
	defer timer.Stop()
	select {
	case <-changes:
	case <-timer.C():
	case <-hold.Lost():
		return false, nil
	case <-Draining(x.r.Context()):
		return false, nil
	case <-x.r.Context().Done():
		return false, errClientGone
	}
	return true, nil
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
