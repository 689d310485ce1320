package postgres

import (
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// windows decide on the rates of one batch at one instant. They hold what was counted before, under the locks of the
// transaction, and count what they admit.
type windows struct {
	limits  verification.Limits
	now     time.Time
	keys    map[string]*keyWindow
	numbers map[string]*placeWindow
	// groups are those of prefixes and subjects; nil where neither is limited.
	groups map[string]*placeWindow
}

// keyWindow counts the admissions of an API key. They are numbered from the key's first; those of one batch are one row.
type keyWindow struct {
	// total is the number of the last admission, lastAt its time.
	total  int64
	lastAt time.Time
	// first is the oldest row that still counts; its n is zero if there is none.
	first admissions
	// leaves is when the admission stops counting that must go before another fits, where that is not in first.
	leaves time.Time
	// admitted is how many this batch adds.
	admitted int64
}

// admissions are a row of admissions at one instant: the n up to the number total.
type admissions struct {
	at       time.Time
	total, n int64
}

// counted is how many count now.
func (w *keyWindow) counted() int64 {
	if w.first.n == 0 {
		return w.admitted
	}
	return w.total + w.admitted - (w.first.total - w.first.n)
}

// blocking returns the number of the admission that has to leave before rate admits another one.
func (w *keyWindow) blocking(rate verification.Rate) int64 {
	return w.total + w.admitted + 1 - int64(rate.Requests)
}

// beyondFirst tells whether that admission is in a later row than the oldest that counts, as after a rate was lowered.
func (w *keyWindow) beyondFirst(rate verification.Rate) bool {
	return w.first.n > 0 && w.counted() > int64(rate.Requests) && w.blocking(rate) > w.first.total
}

// wait is how long it is until rate admits one more at now; zero if it does at once.
func (w *keyWindow) wait(rate verification.Rate, now time.Time) time.Duration {
	switch {
	case w.counted() < int64(rate.Requests):
		return 0
	case !w.leaves.IsZero():
		return w.leaves.Add(rate.Period).Sub(now)
	default:
		return w.oldest(now).Add(rate.Period).Sub(now)
	}
}

// oldest is the time of the oldest admission that counts.
func (w *keyWindow) oldest(now time.Time) time.Time {
	if w.first.n == 0 {
		return now
	}
	return w.first.at
}

// add counts one more and returns what is left.
func (w *keyWindow) add(rate verification.Rate, now time.Time) verification.Quota {
	w.admitted++
	return verification.Quota{
		Remaining: rate.Requests - int(w.counted()),
		Reset:     w.oldest(now).Add(rate.Period).Sub(now),
	}
}

// at is the time of this batch's row. It never goes back where the clock does, so rows are in the order of their numbers.
func (w *keyWindow) at(now time.Time) time.Time {
	if now.Before(w.lastAt) {
		return w.lastAt
	}
	return now
}

// placeWindow counts the admissions of a phone number, a prefix or a subject. They are numbered by their places, so the one
// that has to leave before another fits is known by its place, and no other is read.
type placeWindow struct {
	// last is the place of the last admission that is stored, lastAt its time. Another transaction must not take the next.
	last   int64
	lastAt time.Time
	// times are those of the stored admissions that may have to leave, by place. One that is missing has left.
	times map[int64]time.Time
	// admitted is how many this batch adds.
	admitted int64
}

// wait is how long it is until rate admits one more at now; zero if it does at once.
func (w *placeWindow) wait(rate verification.Rate, now time.Time) time.Duration {
	place := w.last + w.admitted + 1 - int64(rate.Requests)
	leaves, stored := w.times[place]
	switch {
	case place > w.last: // this batch added it
		leaves = w.at(now)
	case !stored:
		return 0
	}
	return max(0, leaves.Add(rate.Period).Sub(now))
}

// add counts one more.
func (w *placeWindow) add() { w.admitted++ }

// at is the time of what this batch adds. It never goes back where the clock does, so times are in the order of places.
func (w *placeWindow) at(now time.Time) time.Time {
	if now.Before(w.lastAt) {
		return w.lastAt
	}
	return now
}

// admit counts a creation, or refuses it.
func (w *windows) admit(n verification.New) (verification.Quota, error) {
	var waits verification.Waits
	perKey, perNumber := w.limits.PerKey, w.limits.PerPhoneNumber
	if perKey.Limited() {
		waits.Key = w.keys[n.KeyName].wait(perKey, w.now)
	}
	line := windowOf(w.numbers, lineOf(n))
	if perNumber.Limited() {
		waits.PhoneNumber = line.wait(perNumber, w.now)
	}
	prefix, subject := prefixOf(n, w.limits), subjectOf(n, w.limits)
	if prefix != "" {
		waits.Prefix = windowOf(w.groups, prefix).wait(w.limits.PerPrefix.Rate, w.now)
	}
	if subject != "" {
		waits.Subject = windowOf(w.groups, subject).wait(w.limits.PerSubject, w.now)
	}
	if err := waits.Refusal(); err != nil {
		return verification.Quota{}, err
	}
	if perNumber.Limited() {
		line.add()
	}
	for _, group := range [...]string{prefix, subject} {
		if group != "" {
			w.groups[group].add()
		}
	}
	if !perKey.Limited() {
		return verification.Quota{}, nil
	}
	return w.keys[n.KeyName].add(perKey, w.now), nil
}

// windowOf returns the window of that name, a new one where nothing was counted.
func windowOf(all map[string]*placeWindow, name string) *placeWindow {
	window := all[name]
	if window == nil {
		window = &placeWindow{}
		all[name] = window
	}
	return window
}

// Prefixes and subjects share a table; their names begin differently.
const (
	prefixGroup  = "prefix "
	subjectGroup = "subject "
)

// prefixOf is the name of the key's prefix that a creation counts for; empty where none limits it.
func prefixOf(n verification.New, limits verification.Limits) string {
	group := limits.PerPrefix.Group(n)
	if group.Prefix == "" {
		return ""
	}
	return prefixGroup + group.Prefix + " " + group.KeyName
}

// subjectOf is the name of the subject that a creation counts for; empty where none limits it.
func subjectOf(n verification.New, limits verification.Limits) string {
	if n.Subject == "" || !limits.PerSubject.Limited() {
		return ""
	}
	return subjectGroup + n.Subject
}

// groupRate returns the rate of a prefix or a subject.
func groupRate(name string, limits verification.Limits) verification.Rate {
	if strings.HasPrefix(name, prefixGroup) {
		return limits.PerPrefix.Rate
	}
	return limits.PerSubject
}

// lineOf is the name that all forms of a number share.
func lineOf(n verification.New) string { return phone.Canonical(n.Phone).E164() }
