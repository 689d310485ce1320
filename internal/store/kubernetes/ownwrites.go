package kubernetes

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// ownWriteLife bounds how long a write counts that the watch never confirmed, for example a deletion that the watch brought
// before the API server answered.
const ownWriteLife = time.Minute

// ownWrites hold the states that this replica wrote and the watch has not brought yet, so that a replica always sees its own
// writes. The zero value is ready.
type ownWrites struct {
	mu      sync.Mutex
	entries map[string]ownWrite
	swept   time.Time
}

type ownWrite struct {
	entry *entry
	at    time.Time
}

// recordWrite records a state that the API server returned; kind KindGone is a deletion of that state.
func (r *ownWrites) recordWrite(e *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entries == nil {
		r.entries = make(map[string]ownWrite)
	}
	if known, ok := r.entries[e.Name]; ok && known.entry.UID == e.UID && isNewer(known.entry.ResourceVersion, e.ResourceVersion) {
		return
	}
	now := time.Now() // of this process, not the store's time
	r.entries[e.Name] = ownWrite{entry: e, at: now}
	if now.Sub(r.swept) < ownWriteLife {
		return
	}
	r.swept = now
	for name, w := range r.entries {
		if now.Sub(w.at) > ownWriteLife {
			delete(r.entries, name)
		}
	}
}

// forgetObserved forgets a write that the watch has brought.
func (r *ownWrites) forgetObserved(seen *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	own, ok := r.entries[seen.Name]
	if !ok {
		return
	}
	caughtUp := isNewer(seen.ResourceVersion, own.entry.ResourceVersion)
	if own.entry.UID == seen.UID {
		caughtUp = own.entry.kind != KindGone && !isNewer(own.entry.ResourceVersion, seen.ResourceVersion)
	}
	if caughtUp {
		delete(r.entries, seen.Name)
	}
}

// forgetDeleted forgets the writes to an object that the watch reported as deleted.
func (r *ownWrites) forgetDeleted(seen *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if own, ok := r.entries[seen.Name]; ok && own.entry.UID == seen.UID {
		delete(r.entries, seen.Name)
	}
}

// names returns the names of the objects whose last write the watch has not brought yet.
func (r *ownWrites) names() sets.Set[string] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return sets.KeySet(r.entries)
}

// latestState returns the later of our own state and the watch's. The watch is read second, so that it has what was forgotten
// here in between.
func (r *ownWrites) latestState(name string, watched func() *entry) *entry {
	r.mu.Lock()
	own, ok := r.entries[name]
	r.mu.Unlock()
	seen := watched()
	switch {
	case !ok, time.Since(own.at) > ownWriteLife:
		return seen
	case seen == nil, own.entry.UID == seen.UID && own.entry.kind == KindGone, isNewer(own.entry.ResourceVersion, seen.ResourceVersion):
		return own.entry
	default:
		return seen
	}
}
