// Package codesender has a sender of codes for tests.
package codesender

import (
	"slices"
	"sync"

	"github.com/phoneproof/phoneproof/internal/redact"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// Sender is a verification.CodeSender that records what it is to send. A slot is free again only by Release.
type Sender struct {
	mu   sync.Mutex
	free int // slots
	sent []verification.Request
	// given are the clients' own codes among them.
	given []string
}

// slot is a place with the client's own code; empty for none.
type slot struct {
	*Sender

	given string
}

// New returns a sender with that many free slots.
func New(free int) *Sender { return &Sender{free: free} }

// ReserveSlot takes a free slot.
func (s *Sender) ReserveSlot(_ string, given redact.Value[string]) (verification.CodeSlot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free == 0 {
		return nil, false
	}
	s.free--
	return slot{s, given.Reveal()}, true
}

// StartSending records the request.
func (s slot) StartSending(r verification.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, r)
	if s.given != "" {
		s.Sender.given = append(s.Sender.given, s.given)
	}
}

// Release frees a slot.
func (s *Sender) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
}

// SetFree sets the number of free slots.
func (s *Sender) SetFree(free int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = free
}

// CountFree returns the number of free slots.
func (s *Sender) CountFree() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free
}

// ListGiven returns the clients' own codes that were recorded, in their order.
func (s *Sender) ListGiven() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.given)
}

// ListSent returns the requests that were recorded, in their order.
func (s *Sender) ListSent() []verification.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}
