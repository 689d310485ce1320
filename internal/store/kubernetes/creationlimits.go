package kubernetes

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// creationLimits counts what limits refer to: how many requests were created in a window, by key, number, prefix and subject,
// which numbers cool down, and how many objects are stored. It counts this replica's admissions at once and those of others when the
// watch brings them, so replicas together exceed a limit by no more than what each admits within the watch's lag.
type creationLimits struct {
	mu       sync.Mutex
	admitted *verification.Admissions
	stored   map[string]*entry
	// tests counts those of stored that are of test keys, which have room of their own.
	tests int
	// reserved are admissions whose creation is in progress. They take room.
	reserved map[string]bool // whether it is of a test key
	// leaving are stored requests whose eviction is in progress. Each makes room for one creation: if all creations chose the
	// oldest, one would delete it and the others would have to choose again.
	leaving map[string]struct{}
}

func newCreationLimits() *creationLimits {
	return &creationLimits{
		admitted: verification.NewSharedAdmissions(),
		stored:   make(map[string]*entry), reserved: make(map[string]bool), leaving: make(map[string]struct{}),
	}
}

// addObserved adds a state from the watch.
func (l *creationLimits) addObserved(e *entry, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.reserved, e.Name)
	l.setStored(e)
	l.addState(e)
	if e.object == nil || e.request.CreatedAt.IsZero() {
		return
	}
	l.admitted.Add(e.countedCreation(), e.request.CreatedAt, now)
}

// replaceStored replaces a stored state by one that did not come from the watch. It adds none: the watch may have brought the
// object's deletion by now, and would not bring it again.
func (l *creationLimits) replaceStored(e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.stored[e.Name]; known {
		l.setStored(e)
		l.addState(e)
	}
}

// addWritten adds a state that this replica wrote, so that a decline counts here before the watch brings it.
func (l *creationLimits) addWritten(e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.stored[e.Name]; known {
		l.addState(e)
	}
}

// addState adds a state for the cool-down of its number.
func (l *creationLimits) addState(e *entry) {
	if e.kind == KindRequest {
		l.admitted.AddState(&e.request)
	} else {
		l.admitted.RemoveState(e.Name)
	}
}

// removeStored removes a deleted object. Its creation stays counted in the windows.
func (l *creationLimits) removeStored(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stored[name].isTest() {
		l.tests--
	}
	delete(l.stored, name)
	l.admitted.RemoveState(name)
}

// setStored stores the state of an object.
func (l *creationLimits) setStored(e *entry) {
	if l.stored[e.Name].isTest() {
		l.tests--
	}
	if e.isTest() {
		l.tests++
	}
	l.stored[e.Name] = e
}

// admission is a creation that is to be admitted.
type admission struct {
	verification.Counted

	limits verification.Limits
	// takesRoom is set if the request needs a new object. A manual request has one already.
	takesRoom bool
}

// admitOrEvict counts the admission at now and returns what is left for its key, or the refusal, which counts nothing. If the
// request would be one too many to store and an old one may be evicted, that is returned instead: the caller deletes it, calls
// endEviction, and tries again.
func (l *creationLimits) admitOrEvict(a admission, now time.Time) (verification.Quota, *entry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// A first try whose outcome is unknown does not refuse its own repetition.
	earlier, repeated := l.admitted.Withdraw(a.Counted)
	quota, old, err := l.admitOnce(a, now)
	if repeated && (err != nil || old != nil) {
		l.admitted.Add(a.Counted, earlier, now)
	}
	return quota, old, err
}

// admitOnce is admitOrEvict for a creation that is not counted yet. The caller holds the lock.
func (l *creationLimits) admitOnce(a admission, now time.Time) (verification.Quota, *entry, error) {
	if err := l.admitted.Refuse(a.Counted, a.limits, now); err != nil {
		return verification.Quota{}, nil, err
	}
	if l.exceedsCap(a) {
		old, wait := l.chooseEvictable(a.Test, a.limits, now, a.limits.MaxStored)
		if old == nil {
			return verification.Quota{}, nil, verification.TooManyStored(wait)
		}
		l.leaving[old.Name] = struct{}{}
		return verification.Quota{}, old, nil
	}
	if a.takesRoom {
		l.reserved[a.ID] = a.Test
	}
	return l.admitted.Admit(a.Counted, a.limits, now), nil, nil
}

// checkRoom returns nil if one more request could be stored, else TooManyStored.
func (l *creationLimits) checkRoom(limits verification.Limits, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.exceedsCap(admission{limits: limits, takesRoom: true}) {
		return nil
	}
	if old, wait := l.chooseEvictable(false, limits, now, 1); old == nil {
		return verification.TooManyStored(wait)
	}
	return nil
}

// endEviction ends the eviction of a request, whether it was deleted or not.
func (l *creationLimits) endEviction(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.leaving, name)
}

// undoAdmission undoes an admission whose creation certainly did not happen.
func (l *creationLimits) undoAdmission(a admission, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.reserved, a.ID)
	l.admitted.Remove(a.Counted, now)
}

// exceedsCap reports whether the admission would exceed the cap.
func (l *creationLimits) exceedsCap(a admission) bool {
	tests := l.tests
	for _, test := range l.reserved {
		if test {
			tests++
		}
	}
	stored := tests
	if !a.Test {
		stored = len(l.stored) + len(l.reserved) - tests
	}
	if a.takesRoom {
		stored++
	}
	return a.limits.MaxStored > 0 && stored > a.limits.MaxStored
}

// confirmCreation turns a reservation into a stored object, unless the watch did so already, or has even brought its deletion.
func (l *creationLimits) confirmCreation(e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, open := l.reserved[e.Name]; open {
		delete(l.reserved, e.Name)
		l.setStored(e)
	}
}

// endReservation ends the reservation of a creation whose outcome is unknown. It stays counted in the windows, and takes room if
// the watch brings it.
func (l *creationLimits) endReservation(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.reserved, id)
}

// maxEvictionChoices bounds among how many of the oldest requests the evicted one is drawn: at most a tenth of a full store. If
// all replicas chose the very oldest, only one of them could delete it.
const maxEvictionChoices = 256

// chooseEvictable returns one of the oldest requests, of test keys or of all others, that a full store may delete and that are not
// leaving. If there is none, it returns how long it is until there is one; negative if that is unknown.
func (l *creationLimits) chooseEvictable(
	test bool, limits verification.Limits, now time.Time, maxStored int,
) (chosen *entry, wait time.Duration) {
	wait = -1
	most := max(1, min(maxStored/10, maxEvictionChoices))
	oldest := make([]*entry, 0, most)
	for name, e := range l.stored {
		if _, leaves := l.leaving[name]; leaves || e.kind != KindRequest || e.request.Test != test {
			continue
		}
		switch at := e.request.EvictableAt(limits); {
		case at.IsZero(): // an event is still to be delivered: the time is unknown
		case now.Before(at):
			if left := at.Sub(now); wait < 0 || left < wait {
				wait = left
			}
		default:
			oldest = insertByAge(oldest, e, most)
		}
	}
	if len(oldest) == 0 {
		return nil, wait
	}
	return oldest[rand.IntN(len(oldest))], 0 //nolint:gosec // no secret
}

// insertByAge keeps the oldest entries, in order.
func insertByAge(oldest []*entry, e *entry, most int) []*entry {
	if len(oldest) == most {
		if compareAge(e, oldest[most-1]) > 0 {
			return oldest
		}
		oldest = oldest[:most-1]
	}
	i, _ := slices.BinarySearchFunc(oldest, e, compareAge)
	return slices.Insert(oldest, i, e)
}

// compareAge orders requests by their creation.
func compareAge(a, b *entry) int {
	return cmp.Or(a.request.CreatedAt.Compare(b.request.CreatedAt), cmp.Compare(a.Name, b.Name))
}
