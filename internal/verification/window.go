package verification

import (
	"cmp"
	"container/list"
	"slices"
	"time"
)

// Rate is a sliding-window limit: at most Requests created in (now - Period, now]. Its zero value admits everything.
type Rate struct {
	Requests int
	Period   time.Duration
}

// Limited reports whether the rate limits anything.
func (r Rate) Limited() bool { return r.Requests > 0 && r.Period > 0 }

// BlockingPlace returns the place of the admission that must leave the window before another one is admitted, if the last
// admission has the place last. Places count from 1: nothing blocks if it is less.
func (r Rate) BlockingPlace(last int64) int64 { return last + 1 - int64(r.Requests) }

// UntilLeft returns how long after now an admission still counts: at admitted + Period it no longer does.
func (r Rate) UntilLeft(admitted, now time.Time) time.Duration {
	return admitted.Add(r.Period).Sub(now)
}

// maxAhead is how much later than now an admission may be dated, by the clock of another replica. What is dated later counts in
// no window: neither a forged time nor a clock that is set back by an hour may refuse clients for as long.
const maxAhead = 2 * time.Minute

// windows count the admissions of each key exactly. An admission has an id and counts once, however often it is added.
type windows[K comparable] struct {
	byKey map[K]*list.Element
	// idle lists the windows by their last addition, the longest idle first.
	idle *list.List
	// kept is how long an admission is kept. It is more than a period if the period may be raised.
	kept time.Duration
}

type window[K comparable] struct {
	key        K
	admissions []admission // ascending
}

// admission is a time in microseconds and the id of what was admitted.
type admission struct {
	at int64
	id string
}

func (a admission) compare(other admission) int {
	return cmp.Or(cmp.Compare(a.at, other.at), cmp.Compare(a.id, other.id))
}

func newWindows[K comparable](kept time.Duration) windows[K] {
	return windows[K]{byKey: make(map[K]*list.Element), idle: list.New(), kept: kept}
}

// add counts an admission. The zero key means no key and is not counted.
func (w *windows[K]) add(key K, id string, admitted, now time.Time) {
	w.dropIdle(now)
	if none := *new(K); key == none || !admitted.After(now.Add(-w.kept)) || admitted.After(now.Add(maxAhead)) {
		return
	}
	element := w.byKey[key]
	if element == nil {
		element = w.idle.PushBack(&window[K]{key: key})
		w.byKey[key] = element
	}
	w.idle.MoveToBack(element)
	win := windowOf[K](element)
	win.admissions = win.within(w.kept, now)
	added := admission{admitted.UnixMicro(), id}
	if i, known := slices.BinarySearchFunc(win.admissions, added, admission.compare); !known {
		win.admissions = slices.Insert(win.admissions, i, added)
	}
}

// remove uncounts an admission.
func (w *windows[K]) remove(key K, id string, admitted time.Time) {
	element := w.byKey[key]
	if element == nil {
		return
	}
	win := windowOf[K](element)
	i, known := slices.BinarySearchFunc(win.admissions, admission{admitted.UnixMicro(), id}, admission.compare)
	if !known {
		return
	}
	if win.admissions = slices.Delete(win.admissions, i, i+1); len(win.admissions) == 0 {
		w.drop(element)
	}
}

// findAdmission returns when an admission of a key was counted; false if none with that id is.
func (w *windows[K]) findAdmission(key K, id string) (time.Time, bool) {
	element := w.byKey[key]
	if element == nil {
		return time.Time{}, false
	}
	admissions := windowOf[K](element).admissions
	i := slices.IndexFunc(admissions, func(a admission) bool { return a.id == id })
	if i < 0 {
		return time.Time{}, false
	}
	return time.UnixMicro(admissions[i].at), true
}

// dropIdle drops the windows whose admissions are all kept long enough. Each was added once, so the amortised cost is O(1).
func (w *windows[K]) dropIdle(now time.Time) {
	for element := w.idle.Front(); element != nil; element = w.idle.Front() {
		if len(windowOf[K](element).within(w.kept, now)) > 0 {
			return
		}
		w.drop(element)
	}
}

func (w *windows[K]) drop(element *list.Element) {
	delete(w.byKey, windowOf[K](element).key)
	w.idle.Remove(element)
}

func windowOf[K comparable](element *list.Element) *window[K] {
	return element.Value.(*window[K]) //nolint:forcetypeassert // the list holds nothing else
}

// within returns the admissions in (now - period, now + maxAhead].
func (w *window[K]) within(period time.Duration, now time.Time) []admission {
	first := w.firstAfter(now.Add(-period))
	return w.admissions[first:max(first, w.firstAfter(now.Add(maxAhead)))]
}

// firstAfter returns the index of the first admission after t.
func (w *window[K]) firstAfter(t time.Time) int {
	i, _ := slices.BinarySearchFunc(w.admissions, t.UnixMicro()+1, func(a admission, at int64) int { return cmp.Compare(a.at, at) })
	return i
}

// counted returns the admissions of a key that count now.
func (w *windows[K]) counted(key K, rate Rate, now time.Time) []admission {
	element := w.byKey[key]
	if element == nil {
		return nil
	}
	return windowOf[K](element).within(rate.Period, now)
}

// retryAfter returns how long after now rate admits one more of key; zero if it does at once.
func (w *windows[K]) retryAfter(key K, rate Rate, now time.Time) time.Duration {
	if !rate.Limited() {
		return 0
	}
	counted := w.counted(key, rate, now)
	place := rate.BlockingPlace(int64(len(counted)))
	if place < 1 {
		return 0
	}
	return rate.UntilLeft(time.UnixMicro(counted[place-1].at), now)
}

// quota returns what is left of a key's rate; zero if there is no rate.
func (w *windows[K]) quota(key K, rate Rate, now time.Time) Quota {
	if !rate.Limited() {
		return Quota{}
	}
	counted := w.counted(key, rate, now)
	if len(counted) == 0 {
		return Quota{Remaining: rate.Requests}
	}
	// A lowered rate may leave more admissions than it allows: enough of them must leave.
	next := counted[max(0, len(counted)-rate.Requests)]
	return Quota{
		Remaining: max(0, rate.Requests-len(counted)),
		Reset:     rate.UntilLeft(time.UnixMicro(next.at), now),
	}
}
