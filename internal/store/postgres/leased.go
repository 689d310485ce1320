package postgres

import (
	"sync"
	"time"
)

// leased holds the states of requests as this replica's claims left them, so that what a worker writes next needs no read
// before it. A state that is not current any more costs a write that meets no row, and then the read.
type leased struct {
	mu     sync.Mutex
	states map[string]leasedState
}

type leasedState struct {
	state

	at time.Time
}

// put takes what a claim returned at a time of this process, and drops what was never asked for.
func (l *leased) put(states []state, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, s := range l.states {
		if at.Sub(s.at) >= freshness {
			delete(l.states, id)
		}
	}
	if l.states == nil && len(states) > 0 {
		l.states = make(map[string]leasedState)
	}
	for _, s := range states {
		l.states[s.ID] = leasedState{s, at}
	}
}

// take returns a state once, while a write that was decided from it would be taken.
func (l *leased) take(id string, now time.Time) (state, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.states[id]
	delete(l.states, id)
	return s.state, ok && now.Sub(s.at) < freshness
}
