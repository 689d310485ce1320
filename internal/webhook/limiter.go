package webhook

import (
	"fmt"
	"sync"
	"time"
)

// BusyError means that no slot of the receiver is free. It is not an attempt: retry after After.
type BusyError struct {
	After time.Duration
}

// Error includes how long to wait.
func (e *BusyError) Error() string {
	return fmt.Sprintf("receiver has the maximum number of events in flight, retry in %s", e.After)
}

// limiter bounds the attempts in flight per receiver, which is a host and port whatever the path, because that is what
// can be overloaded. Calls never wait in it, so a receiver that hangs blocks its own slots and no worker.
//
// It opens slowly: after a start, when all left-over events are due at once, a receiver gets SlowStart slots. Each
// delivery adds one up to MaxInFlight, any other result removes one down to SlowStart.
type limiter struct {
	mu        sync.Mutex
	receivers map[string]*receiver
}

type receiver struct {
	inFlight int
	slots    int
	// typical is the moving average of an attempt's duration.
	typical time.Duration
	// began is when the last attempt began. While all slots are taken, the time since then shows how long the receiver
	// hangs.
	began time.Time
	// free is when all rejected callers so far will have had a slot.
	free time.Time
}

func newLimiter() *limiter { return &limiter{receivers: map[string]*receiver{}} }

// tryAcquire acquires a slot or returns a BusyError. Each rejected caller gets a later time than the one before, one
// attempt's share of the slots apart, so that ten thousand due events for a slow receiver do not return at once. An
// acquired slot must be released.
func (l *limiter) tryAcquire(key string, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.receivers[key]
	if r == nil {
		l.forgetIdle()
		r = &receiver{slots: SlowStart, typical: firstGuess}
		l.receivers[key] = r
	}
	if r.inFlight < r.slots {
		r.inFlight++
		r.began = now
		return nil
	}
	return r.queueCaller(now)
}

// checkBusy returns the BusyError that tryAcquire would return, or nil while slots are free.
func (l *limiter) checkBusy(key string, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.receivers[key]
	if r == nil || r.inFlight < r.slots {
		return nil
	}
	return r.queueCaller(now)
}

// queueCaller returns the BusyError of the next rejected caller. An attempt that already hangs for longer than usual is
// expected to last as long again.
func (r *receiver) queueCaller(now time.Time) error {
	expected := max(r.typical, min(now.Sub(r.began), maxBusy)) // no attempt lasts longer than that
	after := min(max(0, r.free.Sub(now))+expected/time.Duration(r.slots), maxBusy)
	r.free = now.Add(after)
	return &BusyError{After: max(after, minBusy)}
}

// release returns the slot of an attempt that lasted for took.
func (l *limiter) release(key string, delivered bool, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.receivers[key]
	r.inFlight--
	r.typical += (took - r.typical) / 8
	if delivered {
		r.slots = min(r.slots+1, MaxInFlight)
	} else {
		r.slots = max(r.slots-1, SlowStart)
	}
}

// releaseUnused returns a slot without an attempt.
func (l *limiter) releaseUnused(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.receivers[key].inFlight--
}

// freeSlots returns how many slots of a receiver are free.
func (l *limiter) freeSlots(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.receivers[key]; r != nil {
		return max(0, r.slots-r.inFlight)
	}
	return SlowStart
}

// forgetIdle keeps the map small when receivers come and go. A forgotten receiver starts slowly again.
func (l *limiter) forgetIdle() {
	if len(l.receivers) < maxReceivers {
		return
	}
	for key, r := range l.receivers {
		if r.inFlight == 0 {
			delete(l.receivers, key)
		}
	}
}
