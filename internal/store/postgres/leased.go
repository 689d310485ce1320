package postgres

import (
	"sync"
	"time"
)

// leaseCache holds the states that this replica's claims returned, so that a worker's next write needs no read. An outdated
// state costs one write without effect, and then the read.
type leaseCache struct {
	mu     sync.Mutex
	states map[string]cachedState
}

type cachedState struct {
	state

	at time.Time
}

// put stores the states of a claim, with a time of this process's clock, and drops entries older than maxStateAge.
func (l *leaseCache) put(states []state, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, s := range l.states {
		if at.Sub(s.at) >= maxStateAge {
			delete(l.states, id)
		}
	}
	if l.states == nil && len(states) > 0 {
		l.states = make(map[string]cachedState)
	}
	for _, s := range states {
		l.states[s.ID] = cachedState{s, at}
	}
}

// takeFresh removes a state and reports whether it is fresh enough for the database to accept a write from it.
func (l *leaseCache) takeFresh(id string, now time.Time) (state, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.states[id]
	delete(l.states, id)
	return s.state, ok && now.Sub(s.at) < maxStateAge
}
