package kubernetes

import (
	"sync"
	"time"
)

// forgetAfter bounds how long recent goes by what the watch never confirmed, for example a deletion that the watch told
// of before the API server answered us.
const forgetAfter = time.Minute

// recent holds the states that this replica wrote and the watch has not brought back yet, so that a replica always
// sees its own writes. The zero value is ready.
type recent struct {
	mu      sync.Mutex
	entries map[string]written
	swept   time.Time
}

type written struct {
	entry *entry
	at    time.Time
}

// wrote notes a state that the API server answered; kind KindGone is a deletion of that state.
func (r *recent) wrote(e *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entries == nil {
		r.entries = make(map[string]written)
	}
	if known, ok := r.entries[e.Name]; ok && known.entry.UID == e.UID && newer(known.entry.ResourceVersion, e.ResourceVersion) {
		return
	}
	now := time.Now() // of this process: nothing here is about the store's time
	r.entries[e.Name] = written{entry: e, at: now}
	if now.Sub(r.swept) < forgetAfter {
		return
	}
	r.swept = now
	for name, w := range r.entries {
		if now.Sub(w.at) > forgetAfter {
			delete(r.entries, name)
		}
	}
}

// passed forgets what the watch has caught up with.
func (r *recent) passed(seen *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	own, ok := r.entries[seen.Name]
	if !ok {
		return
	}
	caughtUp := newer(seen.ResourceVersion, own.entry.ResourceVersion)
	if own.entry.UID == seen.UID {
		caughtUp = own.entry.kind != KindGone && !newer(own.entry.ResourceVersion, seen.ResourceVersion)
	}
	if caughtUp {
		delete(r.entries, seen.Name)
	}
}

// deleted forgets a life that is over.
func (r *recent) deleted(seen *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if own, ok := r.entries[seen.Name]; ok && own.entry.UID == seen.UID {
		delete(r.entries, seen.Name)
	}
}

// latest returns the later of our own state and the watch's. The watch is looked at second: what it passed meanwhile, and
// is forgotten here, it has.
func (r *recent) latest(name string, watched func() *entry) *entry {
	r.mu.Lock()
	own, ok := r.entries[name]
	r.mu.Unlock()
	seen := watched()
	switch {
	case !ok, time.Since(own.at) > forgetAfter:
		return seen
	case seen == nil, own.entry.UID == seen.UID && own.entry.kind == KindGone, newer(own.entry.ResourceVersion, seen.ResourceVersion):
		return own.entry
	default:
		return seen
	}
}
