package simulator

import (
	"context"
	"time"
)

// event is something that happened.
type event struct {
	Seq int64     `json:"seq"`
	At  time.Time `json:"at"`
	// Type is user, account, message (a user wrote), reply (an account wrote), delivery (a webhook of a platform was posted),
	// received (the receiver got an event), request (one began at the API) or reset.
	Type     string `json:"type"`
	User     string `json:"user,omitempty"`
	Chat     string `json:"chat,omitempty"`
	Platform string `json:"platform,omitempty"`
	Account  string `json:"account,omitempty"`
	// Status is that of HTTP: what the server answered, or what the receiver did.
	Status int `json:"status,omitempty"`
}

// publish keeps an event and wakes all waiters. The lock is held.
func (h *hub) publish(e event) {
	h.seq++
	e.Seq, e.At = h.seq, h.clock.Now().UTC()
	h.events = appendBounded(h.events, e, maxEvents)
	h.wakeWaiters()
}

// wakeWaiters wakes all that wait for a change. The lock is held.
func (h *hub) wakeWaiters() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// appendBounded appends to a list that forgets its oldest.
func appendBounded[T any](list []T, v T, most int) []T {
	if len(list) >= most {
		list = append(list[:0:0], list[len(list)-most+1:]...)
	}
	return append(list, v)
}

// waitUntil waits until done, which is called with the lock held, says true. It gives up after wait, or when ctx ends.
func (h *hub) waitUntil(ctx context.Context, wait time.Duration, done func() bool) {
	timer := h.clock.NewTimer(wait)
	defer timer.Stop()
	for {
		h.mu.Lock()
		ok, changed := done(), h.changed
		h.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-timer.C():
			return
		case <-ctx.Done():
			return
		}
	}
}
