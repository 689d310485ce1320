package kubernetes

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// ledger counts what limits speak of: how many requests were created in a window, by key and by number, and how many
// objects are stored. It holds this replica's own admissions from the moment it decides on them and the others' from
// the moment the watch tells of them, so replicas exceed a limit together by no more than what each admits within the
// watch's lag.
type ledger struct {
	mu     sync.Mutex
	keys   tally[string]
	phones tally[phone.Number]
	stored map[string]*entry
	// reserved are admissions whose creation is under way. They take room.
	reserved map[string]struct{}
}

func newLedger() *ledger {
	return &ledger{
		keys: newTally[string](), phones: newTally[phone.Number](),
		stored: make(map[string]*entry), reserved: make(map[string]struct{}),
	}
}

// observe takes a state from the watch, or one that this replica wrote.
func (l *ledger) observe(e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.reserved, e.Name)
	l.stored[e.Name] = e
	if e.object == nil || e.request.CreatedAt.IsZero() {
		return
	}
	at := e.request.CreatedAt.UnixMicro()
	l.phones.add(phone.Canonical(e.request.Phone), e.Name, at)
	if e.request.KeyName != "" {
		l.keys.add(e.request.KeyName, e.Name, at)
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
	id     string
	key    string
	phone  phone.Number
	limits verification.Limits
	// room says that the request takes the room of an object. One made with kubectl has it already.
	room bool
}

// admit counts the admission at now and returns what is left for its key, or the refusal. Nothing refused is counted.
// Where the request would be one too many to store and another may go for it, that one is returned instead, the oldest
// first; the caller deletes it and asks again.
func (l *ledger) admit(a admission, now time.Time) (verification.Quota, *entry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	number := phone.Canonical(a.phone)
	forKey := l.keys.wait(a.key, a.limits.PerKey, now)
	forNumber := l.phones.wait(number, a.limits.PerPhoneNumber, now)
	switch {
	case forNumber > forKey:
		return verification.Quota{}, nil, verification.RateLimited(verification.LimitPerPhoneNumber, forNumber)
	case forKey > 0:
		return verification.Quota{}, nil, verification.RateLimited(verification.LimitPerKey, forKey)
	}
	if l.over(a) {
		evictable, wait := l.evictable(now)
		if len(evictable) == 0 {
			return verification.Quota{}, nil, verification.TooManyStored(wait)
		}
		return verification.Quota{}, evictable[0], nil
	}
	at := now.UnixMicro()
	if a.room {
		l.reserved[a.id] = struct{}{}
	}
	l.phones.add(number, a.id, at)
	l.phones.sweep(a.limits.PerPhoneNumber.Period, now)
	if a.key != "" {
		l.keys.add(a.key, a.id, at)
	}
	l.keys.sweep(a.limits.PerKey.Period, now)
	return l.keys.quota(a.key, a.limits.PerKey, now), nil, nil
}

// withdraw undoes an admission whose creation certainly did not happen.
func (l *ledger) withdraw(a admission, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.reserved, a.id)
	at := now.UnixMicro()
	l.phones.remove(phone.Canonical(a.phone), a.id, at)
	l.keys.remove(a.key, a.id, at)
}

// over tells whether the admission would exceed the cap.
func (l *ledger) over(a admission) bool {
	stored := len(l.stored) + len(l.reserved)
	if a.room {
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

const (
	// soonest and latest bound what a full store answers as Retry-After.
	soonest = time.Second
	latest  = time.Minute
)

// evictable returns the requests that a full store may delete, in the order of their creation, and, where there is
// none, how long it is at least until there is one.
func (l *ledger) evictable(now time.Time) ([]*entry, time.Duration) {
	var found []*entry
	wait := latest
	for _, e := range l.stored {
		switch {
		case e.kind != KindRequest:
		case e.request.Evictable(now):
			found = append(found, e)
		case e.request.Phase == verification.Pending:
			wait = min(wait, e.request.ExpiresAt.Add(verification.ExpiryGrace).Sub(now))
		}
	}
	slices.SortFunc(found, func(a, b *entry) int {
		return cmp.Or(a.request.CreatedAt.Compare(b.request.CreatedAt), cmp.Compare(a.Name, b.Name))
	})
	return found, max(wait, soonest)
}
