package storetest

import (
	"sync"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// CodeSender is a verification.CodeSender that records what it is to send. A slot is free again only by Release.
type CodeSender struct {
	mu   sync.Mutex
	Free int // slots
	Sent []verification.Request
}

// ReserveSlot takes a free slot.
func (s *CodeSender) ReserveSlot(string) (verification.CodeSlot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Free == 0 {
		return nil, false
	}
	s.Free--
	return s, true
}

// StartSending records the request.
func (s *CodeSender) StartSending(r verification.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Sent = append(s.Sent, r)
}

// Release frees a slot.
func (s *CodeSender) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Free++
}
