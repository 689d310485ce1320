package memory

import (
	"container/list"
	"slices"
	"time"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// checkRates returns the refusal of a creation by a rate; nil if all rates admit it. It counts nothing, because a refused
// creation does not count.
func (p *project) checkRates(n verification.New, limits verification.Limits, now time.Time) error {
	return verification.Waits{
		Key:         p.keys.retryAfter(n.KeyName, limits.PerKey, now),
		PhoneNumber: p.phones.retryAfter(phone.Canonical(n.Phone), limits.PerPhoneNumber, now),
		Prefix:      p.prefixes.retryAfter(limits.PerPrefix.Group(n), limits.PerPrefix.Rate, now),
		Subject:     p.subjects.retryAfter(n.Subject, limits.PerSubject, now),
	}.Refusal()
}

// countAdmission counts an admitted creation and returns what is left for its key.
func (p *project) countAdmission(n verification.New, limits verification.Limits, now time.Time) verification.Quota {
	p.phones.add(phone.Canonical(n.Phone), limits.PerPhoneNumber, now)
	p.prefixes.add(limits.PerPrefix.Group(n), limits.PerPrefix.Rate, now)
	p.subjects.add(n.Subject, limits.PerSubject, now)
	return p.keys.add(n.KeyName, limits.PerKey, now)
}

// windows count the admissions of each key exactly in (now - period, now]. A window holds at most as many times as its rate
// admits, and is dropped when the last of them has left.
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

// retryAfter returns how long after now rate admits one more of key; zero if it does at once.
func (w *windows[K]) retryAfter(key K, rate verification.Rate, now time.Time) time.Duration {
	element := w.byKey[key]
	if element == nil || !rate.Limited() {
		return 0
	}
	times := w.trimWindow(element, rate.Period, now)
	if len(times) < rate.Requests {
		return 0
	}
	// A lowered rate may leave more times than it admits; enough of them must leave.
	return untilLeft(times[len(times)-rate.Requests], rate.Period, now)
}

// add counts an admission at now and returns what is left after it. The zero key means no key and is not counted.
func (w *windows[K]) add(key K, rate verification.Rate, now time.Time) verification.Quota {
	w.sweepIdle(rate, now)
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

// sweepIdle drops the windows whose admissions have all left; without a rate, all windows. Each window was added once, so the
// amortised cost is O(1).
func (w *windows[K]) sweepIdle(rate verification.Rate, now time.Time) {
	begin := now.Add(-rate.Period).UnixMicro()
	for element := w.oldest.Front(); element != nil; element = w.oldest.Front() {
		if times := windowOf[K](element).times; rate.Limited() && times[len(times)-1] > begin {
			return
		}
		w.dropWindow(element)
	}
}

// trimWindow drops the times outside (now - period, now] and returns the others. Times after now come from a clock that was
// set back.
func (w *windows[K]) trimWindow(element *list.Element, period time.Duration, now time.Time) []int64 {
	win := windowOf[K](element)
	first, _ := slices.BinarySearch(win.times, now.Add(-period).UnixMicro()+1)
	end, _ := slices.BinarySearch(win.times, now.UnixMicro()+1)
	win.times = win.times[min(first, end):end]
	if len(win.times) == 0 {
		w.dropWindow(element)
	}
	return win.times
}

func (w *windows[K]) dropWindow(element *list.Element) {
	delete(w.byKey, windowOf[K](element).key)
	w.oldest.Remove(element)
}

func windowOf[K comparable](element *list.Element) *window[K] {
	return element.Value.(*window[K]) //nolint:forcetypeassert // the list holds nothing else
}

// untilLeft returns how long a time still counts: at time + period it no longer does.
func untilLeft(micros int64, period time.Duration, now time.Time) time.Duration {
	return time.UnixMicro(micros).Add(period).Sub(now)
}
