package telegram

import (
	"sync"
	"time"
)

// strangers decides which messages that mean nothing to us are answered: one a day for each sender, one a second in all,
// so that two bots that answer each other fall silent. The zero value is ready.
type strangers struct {
	mu       sync.Mutex
	answered map[string]struct{}
	order    []answered // the oldest first
}

type answered struct {
	sender string
	at     time.Time
}

// may tells whether that sender is answered now, and remembers it. What is over is forgotten, so there are never more than
// strangerEvery / strangersEvery to remember.
func (s *strangers) may(sender string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.order) > 0 && now.Sub(s.order[0].at) >= strangerEvery {
		delete(s.answered, s.order[0].sender)
		s.order = s.order[1:]
	}
	if _, known := s.answered[sender]; known {
		return false
	}
	if n := len(s.order); n > 0 && now.Sub(s.order[n-1].at) < strangersEvery {
		return false
	}
	if s.answered == nil {
		s.answered = make(map[string]struct{})
	}
	s.answered[sender] = struct{}{}
	s.order = append(s.order, answered{sender, now})
	return true
}

// tally counts the messages of each sender within a window. The zero value is ready.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
	until  time.Time
}

// full tells whether a sender had all the messages that he may have.
func (t *tally) full(sender string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return now.Before(t.until) && t.counts[sender] >= maxPerSender
}

// add counts a message. A window with too many senders ends early: then one who has too many goes on a little sooner.
func (t *tally) add(sender string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !now.Before(t.until) || len(t.counts) >= maxSenders {
		t.counts, t.until = make(map[string]int), now.Add(senderWindow)
	}
	t.counts[sender]++
}
