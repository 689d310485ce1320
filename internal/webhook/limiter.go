package webhook

import (
	"fmt"
	"sync"
	"time"
)

// BusyError says that the receiver's slots are taken. It is no attempt: ask again after After.
type BusyError struct {
	After time.Duration
}

// Error says how long to wait.
func (e *BusyError) Error() string {
	return fmt.Sprintf("the receiver has as many events in flight as it may, again in %s", e.After)
}

// limiter bounds the attempts in flight per receiver. A receiver is a host and port, whatever the path: that is what can
// be overrun. Nobody waits in here, so a receiver that hangs holds up its own slots and no worker.
//
// It opens slowly: after a start, when everything that was left over is due at once, a receiver gets SlowStart slots.
// Each event that it takes adds one up to MaxInFlight, anything else takes one away down to SlowStart.
type limiter struct {
	mu        sync.Mutex
	receivers map[string]*receiver
}

type receiver struct {
	inFlight int
	slots    int
	// typical is the moving average of how long an attempt takes.
	typical time.Duration
	// began is when an attempt last began. With all slots taken, the time since tells how long the receiver hangs.
	began time.Time
	// free is when the callers that were sent away so far will have had their turn.
	free time.Time
}

func newLimiter() *limiter { return &limiter{receivers: map[string]*receiver{}} }

// tryAcquire takes a slot or returns a BusyError. Each caller that is sent away is told a later time than the one before,
// one attempt's share of the slots apart, so that ten thousand due events for a slow receiver do not come back as a
// crowd. A slot that was taken must be released.
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

// busy returns the BusyError that tryAcquire would return, or nil while there are slots.
func (l *limiter) checkBusy(key string, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.receivers[key]
	if r == nil || r.inFlight < r.slots {
		return nil
	}
	return r.queueCaller(now)
}

// queueCaller sends a caller away. What hangs already for longer than an attempt takes will not be free sooner than that.
func (r *receiver) queueCaller(now time.Time) error {
	expected := max(r.typical, min(now.Sub(r.began), maxBusy)) // no attempt lasts longer than that
	after := min(max(0, r.free.Sub(now))+expected/time.Duration(r.slots), maxBusy)
	r.free = now.Add(after)
	return &BusyError{After: max(after, minBusy)}
}

// release gives a slot back after an attempt that took so long.
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

// releaseUnused gives a slot back that was not used.
func (l *limiter) releaseUnused(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.receivers[key].inFlight--
}

// freeSlots returns how many slots a receiver has left.
func (l *limiter) freeSlots(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.receivers[key]; r != nil {
		return max(0, r.slots-r.inFlight)
	}
	return SlowStart
}

// forgetIdle keeps the map small when receivers come and go. One that is forgotten starts slowly again.
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
