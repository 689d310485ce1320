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
	// received (the receiver got an event), attack or reset.
	Type     string `json:"type"`
	User     string `json:"user,omitempty"`
	Chat     string `json:"chat,omitempty"`
	Platform string `json:"platform,omitempty"`
	Account  string `json:"account,omitempty"`
	Attack   string `json:"attack,omitempty"`
	// Status is that of HTTP: what the server answered, or what the receiver did.
	Status int `json:"status,omitempty"`
}

// tell keeps an event and wakes everybody who waits. s.mu is held.
func (s *Simulator) tell(e event) {
	s.seq++
	e.Seq, e.At = s.seq, s.clock.Now().UTC()
	s.events = keep(s.events, e, maxEvents)
	s.wake()
}

// wake wakes everybody who waits for something to change. s.mu is held.
func (s *Simulator) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// keep appends to a list that forgets its oldest.
func keep[T any](list []T, v T, most int) []T {
	if len(list) >= most {
		list = append(list[:0:0], list[len(list)-most+1:]...)
	}
	return append(list, v)
}

// until waits until done, which is called with s.mu held, says true. It gives up after wait, or when ctx ends.
func (s *Simulator) until(ctx context.Context, wait time.Duration, done func() bool) {
	timer := s.clock.NewTimer(wait)
	defer timer.Stop()
	for {
		s.mu.Lock()
		ok, changed := done(), s.changed
		s.mu.Unlock()
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
