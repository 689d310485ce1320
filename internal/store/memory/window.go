package memory

import (
	"container/list"
	"slices"
	"time"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// refusal returns the refusal of the creation by a rate; nil if all admit it. Nothing is counted yet: a refused creation
// does not count.
func (p *project) refusal(n verification.New, limits verification.Limits, now time.Time) error {
	return verification.Waits{
		Key:         p.keys.wait(n.KeyName, limits.PerKey, now),
		PhoneNumber: p.phones.wait(phone.Canonical(n.Phone), limits.PerPhoneNumber, now),
		Prefix:      p.prefixes.wait(limits.PerPrefix.Group(n), limits.PerPrefix.Rate, now),
		Subject:     p.subjects.wait(n.Subject, limits.PerSubject, now),
	}.Refusal()
}

// count notes an admitted creation and returns what is left for its key.
func (p *project) count(n verification.New, limits verification.Limits, now time.Time) verification.Quota {
	p.phones.add(phone.Canonical(n.Phone), limits.PerPhoneNumber, now)
	p.prefixes.add(limits.PerPrefix.Group(n), limits.PerPrefix.Rate, now)
	p.subjects.add(n.Subject, limits.PerSubject, now)
	return p.keys.add(n.KeyName, limits.PerKey, now)
}

// windows count the admissions of each key exactly in (now - period, now]. A window holds at most as many times as
// its rate admits, and goes when the last of them has left it.
type windows[K comparable] struct {
	byKey map[K]*list.Element
	// oldest lists the windows by their last admission, the longest idle first.
	oldest *list.List
}

type window[K comparable] struct {
	key   K
	times []int64 // of admissions, in microseconds, ascending
}

func newWindows[K comparable]() windows[K] {
	return windows[K]{byKey: make(map[K]*list.Element), oldest: list.New()}
}

// wait returns how long it is until rate admits one more of key at now, zero if it does at once.
func (w *windows[K]) wait(key K, rate verification.Rate, now time.Time) time.Duration {
	element := w.byKey[key]
	if element == nil || !rate.Limited() {
		return 0
	}
	times := w.trim(element, rate.Period, now)
	if len(times) < rate.Requests {
		return 0
	}
	// More times than the rate admits are left over from a higher rate; enough of them must leave.
	return untilLeft(times[len(times)-rate.Requests], rate.Period, now)
}

// add counts an admission at now and returns what is left after it. The zero key is no key and is not counted.
func (w *windows[K]) add(key K, rate verification.Rate, now time.Time) verification.Quota {
	w.sweep(rate, now)
	if none := *new(K); key == none || !rate.Limited() {
		return verification.Quota{}
	}
	element := w.byKey[key]
	if element == nil {
		element = w.oldest.PushBack(&window[K]{key: key})
		w.byKey[key] = element
	}
	win := windowOf[K](element)
	win.times = append(win.times, now.UnixMicro())
	w.oldest.MoveToBack(element)
	return verification.Quota{
		Remaining: rate.Requests - len(win.times),
		Reset:     untilLeft(win.times[0], rate.Period, now),
	}
}

// sweep drops the windows that hold nothing any more; without a rate, all. Each was added once, so this is O(1) on
// average.
func (w *windows[K]) sweep(rate verification.Rate, now time.Time) {
	begin := now.Add(-rate.Period).UnixMicro()
	for element := w.oldest.Front(); element != nil; element = w.oldest.Front() {
		if times := windowOf[K](element).times; rate.Limited() && times[len(times)-1] > begin {
			return
		}
		w.drop(element)
	}
}

// trim drops the times outside (now - period, now] and returns the others. Times after now are those of a clock that
// was set back.
func (w *windows[K]) trim(element *list.Element, period time.Duration, now time.Time) []int64 {
	win := windowOf[K](element)
	first, _ := slices.BinarySearch(win.times, now.Add(-period).UnixMicro()+1)
	end, _ := slices.BinarySearch(win.times, now.UnixMicro()+1)
	win.times = win.times[min(first, end):end]
	if len(win.times) == 0 {
		w.drop(element)
	}
	return win.times
}

func (w *windows[K]) drop(element *list.Element) {
	delete(w.byKey, windowOf[K](element).key)
	w.oldest.Remove(element)
}

func windowOf[K comparable](element *list.Element) *window[K] {
	return element.Value.(*window[K]) //nolint:forcetypeassert // the list holds nothing else
}

// untilLeft is how long a time still counts: at time + period it no longer does.
func untilLeft(micros int64, period time.Duration, now time.Time) time.Duration {
	return time.UnixMicro(micros).Add(period).Sub(now)
}
