package postgres

import (
	"time"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// windows apply the rates to one batch at one instant. They hold the stored admissions, read under the locks of the
// transaction, and count the new ones.
type windows struct {
	limits  verification.Limits
	now     time.Time
	keys    map[string]*keyWindow
	numbers map[string]*placeWindow
	// groups are the windows of groupsOf.
	groups map[string]*placeWindow
	// declined are the times of the last declines of numbers.
	declined map[string]time.Time
}

// keyWindow counts the admissions of an API key. They are numbered from the key's first; each batch is stored as one row.
type keyWindow struct {
	// total is the number of the last admission; lastAt is its time.
	total  int64
	lastAt time.Time
	// first is the oldest row that still counts; its n is zero if there is none.
	first admissions
	// leaves is the time of the admission that must leave before another fits; zero if that is in first.
	leaves time.Time
	// admitted counts the admissions of this batch.
	admitted int64
}

// admissions is a row of n admissions at one instant; total is the number of the last.
type admissions struct {
	at       time.Time
	total, n int64
}

// currentCount returns the number of admissions that count now.
func (w *keyWindow) currentCount() int64 {
	if w.first.n == 0 {
		return w.admitted
	}
	return w.total + w.admitted - (w.first.total - w.first.n)
}

// blockingNumber returns the number of the admission that must leave before rate admits another one.
func (w *keyWindow) blockingNumber(rate verification.Rate) int64 {
	return rate.BlockingPlace(w.total + w.admitted)
}

// beyondFirst reports whether the blocking admission is in a later row than the oldest that counts, as after a rate was lowered.
func (w *keyWindow) beyondFirst(rate verification.Rate) bool {
	return w.first.n > 0 && w.currentCount() > int64(rate.Requests) && w.blockingNumber(rate) > w.first.total
}

// retryAfter returns how long after now rate admits one more; zero if it does at once.
func (w *keyWindow) retryAfter(rate verification.Rate, now time.Time) time.Duration {
	switch {
	case w.currentCount() < int64(rate.Requests):
		return 0
	case !w.leaves.IsZero():
		return rate.UntilLeft(w.leaves, now)
	default:
		return rate.UntilLeft(w.oldestTime(now), now)
	}
}

// oldestTime returns the time of the oldest admission that counts.
func (w *keyWindow) oldestTime(now time.Time) time.Time {
	if w.first.n == 0 {
		return now
	}
	return w.first.at
}

// add counts one more admission and returns the remaining quota.
func (w *keyWindow) add(rate verification.Rate, now time.Time) verification.Quota {
	w.admitted++
	return verification.Quota{
		Remaining: rate.Requests - int(w.currentCount()),
		Reset:     rate.UntilLeft(w.oldestTime(now), now),
	}
}

// notBefore returns the time of a new row after a last one. It never goes back, even if the clock does, so that times follow the
// numbers of admissions.
func notBefore(last, now time.Time) time.Time {
	if now.Before(last) {
		return last
	}
	return now
}

// placeWindow counts the admissions of a phone number or a group. They are numbered by place, so the admission that
// must leave before another fits is found by its place alone.
type placeWindow struct {
	// last is the place of the last stored admission; lastAt is its time. If another transaction takes the next one, this one is
	// retried.
	last   int64
	lastAt time.Time
	// times are the times by place of the stored admissions that may have to leave. A missing one has left.
	times map[int64]time.Time
	// admitted counts the admissions of this batch.
	admitted int64
}

// retryAfter returns how long after now rate admits one more; zero if it does at once.
func (w *placeWindow) retryAfter(rate verification.Rate, now time.Time) time.Duration {
	place := rate.BlockingPlace(w.last + w.admitted)
	leaves, stored := w.times[place]
	switch {
	case place > w.last: // this batch added it
		leaves = notBefore(w.lastAt, now)
	case !stored:
		return 0
	}
	return max(0, rate.UntilLeft(leaves, now))
}

// add counts one more admission.
func (w *placeWindow) add() { w.admitted++ }

// admitCreation counts a creation and returns what is left for its key, or refuses it.
func (w *windows) admitCreation(n verification.New) (verification.Quota, error) {
	var waits verification.Waits
	perKey, perNumber := w.limits.PerKey, w.limits.PerPhoneNumber
	if perKey.Limited() {
		waits.Key = w.keys[keyOf(n)].retryAfter(perKey, w.now)
	}
	number := lineOf(n.Phone)
	line := windowOf(w.numbers, number)
	if perNumber.Limited() {
		waits.PhoneNumber = line.retryAfter(perNumber, w.now)
	}
	groups := groupsOf(n, w.limits, &waits)
	for _, g := range groups {
		*g.wait = max(*g.wait, windowOf(w.groups, g.name).retryAfter(g.rate, w.now))
	}
	counted := n.Counted()
	waits.AddCooldown(counted, verification.UntilCooledDown(w.declined[number], w.limits.CooldownOf(counted), w.now))
	if err := waits.Refusal(); err != nil {
		return verification.Quota{}, err
	}
	if perNumber.Limited() {
		line.add()
	}
	for _, g := range groups {
		w.groups[g.name].add()
	}
	if !perKey.Limited() {
		return verification.Quota{}, nil
	}
	return w.keys[keyOf(n)].add(perKey, w.now), nil
}

// windowOf returns the window of a name, and adds an empty one if there is none.
func windowOf(all map[string]*placeWindow, name string) *placeWindow {
	window := all[name]
	if window == nil {
		window = &placeWindow{}
		all[name] = window
	}
	return window
}

// group is a window of the table that prefixes, subjects and codes share. Its name begins with what it counts by.
type group struct {
	name string
	rate verification.Rate
	// wait is what a creation sets that the window refuses.
	wait *time.Duration
}

// groupsOf returns the windows that a creation counts in, beside those of its key and its number.
func groupsOf(n verification.New, limits verification.Limits, waits *verification.Waits) []group {
	var groups []group
	if prefix := limits.PerPrefix.Group(n); prefix.Prefix != "" {
		groups = append(groups, group{"prefix " + prefix.Prefix + " " + prefix.KeyName, limits.PerPrefix.Rate, &waits.Prefix})
	}
	if n.Subject != "" && limits.PerSubject.Limited() {
		groups = append(groups, group{"subject " + n.Subject, limits.PerSubject, &waits.Subject})
	}
	if n.Terms.Deliver != verification.DeliverNothing && !n.Test {
		groups = append(groups, codeGroupsOf(n, limits.CodesOf(n.Method), waits)...)
	}
	return groups
}

// codeGroupsOf returns the windows of codes that a creation counts in. A window has one rate, so there is one for each period.
func codeGroupsOf(n verification.New, limits verification.CodeLimits, waits *verification.Waits) []group {
	var groups []group
	codes := "codes "
	if n.Method == verification.Telegram {
		codes = "codes telegram "
	}
	for _, rate := range [...]verification.Rate{limits.PerDay, limits.PerHour} {
		if rate.Limited() {
			groups = append(groups, group{codes + rate.Period.String() + " " + n.KeyName, rate, &waits.Codes})
		}
	}
	if limits.Project.Limited() {
		groups = append(groups, group{codes + "project", limits.Project, &waits.Codes}) // in the names above, a digit begins that word
	}
	line := lineOf(n.Phone)
	for _, rate := range verification.CodeNumberRates() {
		groups = append(groups, group{"code number " + rate.Period.String() + " " + line, rate, &waits.CodeNumber})
	}
	return groups
}

// lineOf returns the canonical form of a number, which all its forms share.
func lineOf(n phone.Number) string { return phone.Canonical(n).E164() }
