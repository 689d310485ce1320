package kubernetes

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// ledger counts what limits speak of: how many requests were created in a window, by key, number, prefix and subject, and
// how many objects are stored. It holds this replica's own admissions from the moment it decides on them and the others' from
// the moment the watch tells of them, so replicas exceed a limit together by no more than what each admits within the
// watch's lag.
type ledger struct {
	mu       sync.Mutex
	admitted *verification.Admissions
	stored   map[string]*entry
	// reserved are admissions whose creation is under way. They take room.
	reserved map[string]struct{}
	// leaving are stored ones whose eviction is under way. Each goes for one creation: creations that all chose the
	// oldest would delete it once and ask again, all of them.
	leaving map[string]struct{}
}

func newLedger() *ledger {
	return &ledger{
		admitted: verification.NewSharedAdmissions(),
		stored:   make(map[string]*entry), reserved: make(map[string]struct{}), leaving: make(map[string]struct{}),
	}
}

// observe takes a state from the watch at now.
func (l *ledger) observe(e *entry, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.reserved, e.Name)
	l.stored[e.Name] = e
	if e.object == nil || e.request.CreatedAt.IsZero() {
		return
	}
	l.admitted.Add(e.counted(), e.request.CreatedAt, now)
}

// replace takes a state that did not come from the watch. The watch may have told of the object's end by now, and then
// nobody would tell of it again: what is not stored is not stored by this.
func (l *ledger) replace(e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.stored[e.Name]; known {
		l.stored[e.Name] = e
	}
}

// forget takes a deletion. What was created stays counted in the windows.
func (l *ledger) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.stored, name)
}

// admission is a request that wants in.
type admission struct {
	verification.Counted

	limits verification.Limits
	// takesRoom is set if the request needs a new object. A manual request has one already.
	takesRoom bool
}

// admit counts the admission at now and returns what is left for its key, or the refusal. Nothing refused is counted.
// Where the request would be one too many to store and another may go for it, that one is returned instead, an old one;
// the caller deletes it, says that it has left, and asks again.
func (l *ledger) admit(a admission, now time.Time) (verification.Quota, *entry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.admitted.Refuse(a.Counted, a.limits, now); err != nil {
		return verification.Quota{}, nil, err
	}
	if l.over(a) {
		old, wait := l.evictable(now, a.limits.MaxStored)
		if old == nil {
			return verification.Quota{}, nil, verification.TooManyStored(wait)
		}
		l.leaving[old.Name] = struct{}{}
		return verification.Quota{}, old, nil
	}
	if a.takesRoom {
		l.reserved[a.ID] = struct{}{}
	}
	return l.admitted.Admit(a.Counted, a.limits, now), nil, nil
}

// room tells whether one more request could be stored.
func (l *ledger) room(limits verification.Limits, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over(admission{limits: limits, takesRoom: true}) {
		return nil
	}
	if old, wait := l.evictable(now, 1); old == nil {
		return verification.TooManyStored(wait)
	}
	return nil
}

// left ends the eviction of a request, whether it is gone or not.
func (l *ledger) left(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.leaving, name)
}

// withdraw undoes an admission whose creation certainly did not happen.
func (l *ledger) withdraw(a admission, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.reserved, a.ID)
	l.admitted.Remove(a.Counted, now)
}

// over tells whether the admission would exceed the cap.
func (l *ledger) over(a admission) bool {
	stored := len(l.stored) + len(l.reserved)
	if a.takesRoom {
		stored++
	}
	return a.limits.MaxStored > 0 && stored > a.limits.MaxStored
}

// inserted turns a reservation into an object, unless the watch did so already, or has even seen its end.
func (l *ledger) inserted(e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, open := l.reserved[e.Name]; open {
		delete(l.reserved, e.Name)
		l.stored[e.Name] = e
	}
}

// settle ends the reservation of a creation that nobody knows the outcome of. It stays counted in the windows; the
// watch will tell whether it takes room.
func (l *ledger) settle(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.reserved, id)
}

// spread bounds among how many of the oldest requests the one is drawn that goes: a tenth of a full store, at most. All
// replicas of a full store would delete the very oldest for each of their creations, and only one of them could.
const spread = 256

// evictable returns a request that a full store may delete next, one of the oldest of those that may go and are not leaving,
// or, if there is none, how long it is until there is one; negative if that is unknown.
func (l *ledger) evictable(now time.Time, maxStored int) (chosen *entry, wait time.Duration) {
	wait = -1
	most := max(1, min(maxStored/10, spread))
	oldest := make([]*entry, 0, most)
	for name, e := range l.stored {
		if _, leaves := l.leaving[name]; leaves || e.kind != KindRequest {
			continue
		}
		switch at := e.request.EvictableAt(); {
		case at.IsZero(): // an undelivered event: it is not known when
		case now.Before(at):
			if left := at.Sub(now); wait < 0 || left < wait {
				wait = left
			}
		default:
			oldest = insert(oldest, e, most)
		}
	}
	if len(oldest) == 0 {
		return nil, wait
	}
	return oldest[rand.IntN(len(oldest))], 0 //nolint:gosec // no secret
}

// insert keeps the oldest, in order.
func insert(oldest []*entry, e *entry, most int) []*entry {
	if len(oldest) == most {
		if byAge(e, oldest[most-1]) > 0 {
			return oldest
		}
		oldest = oldest[:most-1]
	}
	i, _ := slices.BinarySearchFunc(oldest, e, byAge)
	return slices.Insert(oldest, i, e)
}

// byAge orders requests by their creation.
func byAge(a, b *entry) int {
	return cmp.Or(a.request.CreatedAt.Compare(b.request.CreatedAt), cmp.Compare(a.Name, b.Name))
}
