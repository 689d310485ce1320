package storetest

import (
	"slices"
	"sync"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// CodeSender is a verification.CodeSender that records what it is to send. A slot is free again only by Release.
type CodeSender struct {
	mu   sync.Mutex
	free int // slots
	sent []verification.Request
}

// NewCodeSender returns a sender with that many free slots.
func NewCodeSender(free int) *CodeSender { return &CodeSender{free: free} }

// ReserveSlot takes a free slot.
func (s *CodeSender) ReserveSlot(string) (verification.CodeSlot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free == 0 {
		return nil, false
	}
	s.free--
	return s, true
}

// StartSending records the request.
func (s *CodeSender) StartSending(r verification.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, r)
}

// Release frees a slot.
func (s *CodeSender) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
}

// SetFree sets the number of free slots.
func (s *CodeSender) SetFree(free int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = free
}

// CountFree returns the number of free slots.
func (s *CodeSender) CountFree() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free
}

// ListSent returns the requests that were recorded, in their order.
func (s *CodeSender) ListSent() []verification.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}
