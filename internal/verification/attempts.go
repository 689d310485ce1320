package verification

import (
	"slices"
	"time"
)

// MaxAttempts is how many delivery attempts a request keeps. A store may keep fewer; see Request.TrimAttempts.
const MaxAttempts = 10

// PastAttempt is a delivery attempt that was recorded, of whichever event the request had then.
type PastAttempt struct {
	At    time.Time
	Event EventKind
	// StatusCode is zero if there was no response.
	StatusCode int
	// Reason is what Delivery.LastReason was; empty for an attempt that delivered the event.
	Reason string
}

// PastAttempts returns the recorded attempts, newest first. They outlive a redelivery, and a later event of the request.
func (r *Request) PastAttempts() []PastAttempt {
	var past []PastAttempt
	if last, ok := r.lastAttempt(); ok {
		past = append(past, last)
	}
	for _, a := range slices.Backward(r.EarlierAttempts) {
		past = append(past, a)
	}
	return past
}

// lastAttempt returns the last attempt of the present event; false if it had none.
func (r *Request) lastAttempt() (PastAttempt, bool) {
	d := &r.Delivery
	if d.LastAttemptAt.IsZero() {
		return PastAttempt{}, false
	}
	return PastAttempt{At: d.LastAttemptAt, Event: r.Event().Kind, StatusCode: d.LastStatusCode, Reason: d.LastReason}, true
}

// archiveAttempt keeps the last attempt of the state before, if the present one has replaced or dropped it.
func (r *Request) archiveAttempt(before *Request) {
	last, ok := before.lastAttempt()
	if ok && (!r.Delivery.LastAttemptAt.Equal(last.At) || r.Delivery.Attempts > before.Delivery.Attempts) {
		r.EarlierAttempts = append(slices.Clip(r.EarlierAttempts), last)
	}
	r.TrimAttempts(MaxAttempts)
}

// TrimAttempts drops the oldest attempts until no more than most are left, the last one included.
func (r *Request) TrimAttempts(most int) {
	if !r.Delivery.LastAttemptAt.IsZero() {
		most--
	}
	if extra := len(r.EarlierAttempts) - most; extra > 0 {
		r.EarlierAttempts = slices.Clone(r.EarlierAttempts[extra:])
	}
	if len(r.EarlierAttempts) == 0 {
		r.EarlierAttempts = nil // as it is read back
	}
}
