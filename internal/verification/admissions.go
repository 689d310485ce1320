package verification

import (
	"time"

	"github.com/phoneproof/phoneproof/internal/phone"
)

// MaxPeriod is the longest period that a Rate has, and the longest Limits.DeclineCooldown.
const MaxPeriod = 24 * time.Hour

// Counted is a creation as the limits count it.
type Counted struct {
	ID      string
	KeyName string
	Phone   phone.Number
	Subject string
	// Test is set for the request of a test key, which counts by its key alone, apart from all others.
	Test bool
	// Deliver is what is sent to the number, through Method.
	Deliver DeliverKind
	Method  Method
}

// Counted returns the creation as the limits count it.
func (n New) Counted() Counted {
	return Counted{
		ID: n.ID, KeyName: n.KeyName, Phone: n.Phone, Subject: n.Subject, Test: n.Test, Deliver: n.Terms.Deliver, Method: n.Method,
	}
}

// Admissions remember the creations that limits count, for stores that count in memory. They are not safe for concurrent use.
//
// Refuse decides about a creation and Admit counts it. Creations that were admitted elsewhere are counted by Add. AddState tells which
// stored requests were declined.
type Admissions struct {
	keys    windows[string]
	tests   windows[string] // of test keys
	numbers windows[phone.Number]
	// prefixes have that many digits; there are none if nothing limits by them.
	prefixes windows[PrefixGroup]
	digits   int
	subjects windows[string]
	// codes and codeNumbers count requests that deliver a code alone, by messenger and key or project, and by number, and keep them for
	// CodeKept.
	codes       windows[codeGroup]
	codeNumbers windows[phone.Number]
	declined    declines
	// keptFor returns how long admissions are kept for a rate of that period.
	keptFor func(period time.Duration) time.Duration
}

// NewAdmissions returns admissions that count from now on and keep no more than the periods of the limits demand.
func NewAdmissions() *Admissions {
	return newAdmissions(0, func(period time.Duration) time.Duration { return period })
}

// NewSharedAdmissions returns admissions that count what other replicas admitted, too. They keep everything that a limit could
// demand until a limit is known, and afterwards some more, so that a period which is raised a little finds what it needs.
func NewSharedAdmissions() *Admissions {
	return newAdmissions(MaxPeriod, func(period time.Duration) time.Duration { return max(2*period, time.Hour) })
}

func newAdmissions(kept time.Duration, keptFor func(time.Duration) time.Duration) *Admissions {
	return &Admissions{
		keys: newWindows[string](kept), tests: newWindows[string](kept), numbers: newWindows[phone.Number](kept),
		prefixes: newWindows[PrefixGroup](kept), subjects: newWindows[string](kept), keptFor: keptFor,
		codes: newWindows[codeGroup](CodeKept), codeNumbers: newWindows[phone.Number](CodeKept),
	}
}

// Refuse returns the refusal of a creation by the rates and the cool-down; nil if all admit it. It counts nothing, because a refused
// creation does not count.
func (a *Admissions) Refuse(c Counted, limits Limits, now time.Time) error {
	if c.Test {
		return Waits{Key: a.tests.retryAfter(c.KeyName, limits.PerKey, now)}.Refusal()
	}
	a.setDigits(limits.PerPrefix, now)
	waits := Waits{
		Key:         a.keys.retryAfter(c.KeyName, limits.PerKey, now),
		PhoneNumber: a.numbers.retryAfter(phone.Canonical(c.Phone), limits.PerPhoneNumber, now),
		Prefix:      a.prefixes.retryAfter(a.groupOf(c), limits.PerPrefix.Rate, now),
		Subject:     a.subjects.retryAfter(c.Subject, limits.PerSubject, now),
	}
	waits.AddCooldown(c, a.declined.retryAfter(c.Phone, limits.CooldownOf(c), now))
	if c.countsAsCode() {
		a.addCodeWaits(&waits, c, limits.CodesOf(c.Method), now)
	}
	return waits.Refusal()
}

// Admit counts a creation at now and returns what is left for its key.
func (a *Admissions) Admit(c Counted, limits Limits, now time.Time) Quota {
	if c.Test {
		a.tests.kept = a.keptFor(limits.PerKey.Period)
		a.Add(c, now, now)
		return a.tests.quota(c.KeyName, limits.PerKey, now)
	}
	a.setDigits(limits.PerPrefix, now)
	a.setKept(c, limits)
	a.Add(c, now, now)
	return a.keys.quota(c.KeyName, limits.PerKey, now)
}

// Add counts a creation that was admitted at another time or replica. It counts once, however often it is added.
func (a *Admissions) Add(c Counted, admitted, now time.Time) {
	if c.Test {
		a.tests.add(c.KeyName, c.ID, admitted, now)
		return
	}
	line := phone.Canonical(c.Phone)
	a.keys.add(c.KeyName, c.ID, admitted, now)
	a.numbers.add(line, c.ID, admitted, now)
	a.prefixes.add(a.groupOf(c), c.ID, admitted, now)
	a.subjects.add(c.Subject, c.ID, admitted, now)
	if c.countsAsCode() {
		for _, group := range c.codeGroups() {
			a.codes.add(group, c.ID, admitted, now)
		}
		a.codeNumbers.add(line, c.ID, admitted, now)
	}
}

// Forget counts from now on, as if nothing had been admitted or declined before.
func (a *Admissions) Forget() {
	declined := a.declined
	clear(declined.byNumber) // byID stays, so that none of them is added once more
	*a = *newAdmissions(0, a.keptFor)
	a.declined = declined
}

// Remove uncounts a creation that did not happen.
func (a *Admissions) Remove(c Counted, admitted time.Time) {
	if c.Test {
		a.tests.remove(c.KeyName, c.ID, admitted)
		return
	}
	a.keys.remove(c.KeyName, c.ID, admitted)
	a.numbers.remove(phone.Canonical(c.Phone), c.ID, admitted)
	a.prefixes.remove(a.groupOf(c), c.ID, admitted)
	a.subjects.remove(c.Subject, c.ID, admitted)
	for _, group := range c.codeGroups() {
		a.codes.remove(group, c.ID, admitted)
	}
	a.codeNumbers.remove(phone.Canonical(c.Phone), c.ID, admitted)
}

// Withdraw uncounts an earlier admission of the same creation, and returns when it was; false if there is none, as for each of a test key.
func (a *Admissions) Withdraw(c Counted) (admitted time.Time, found bool) {
	if c.Test {
		return time.Time{}, false
	}
	if admitted, found = a.numbers.findAdmission(phone.Canonical(c.Phone), c.ID); !found {
		admitted, found = a.codeNumbers.findAdmission(phone.Canonical(c.Phone), c.ID)
	}
	if found {
		a.Remove(c, admitted)
	}
	return admitted, found
}

// groupOf returns the group that a creation counts in by its prefix; zero if no rate limits by prefixes.
func (a *Admissions) groupOf(c Counted) PrefixGroup {
	if a.digits == 0 {
		return PrefixGroup{}
	}
	return PrefixGroup{KeyName: c.KeyName, Prefix: NumberPrefix(c.Phone, a.digits)}
}

// setKept sets how long admissions are kept. Prefixes are counted anew from numbers and keys when their length changes, so both
// are kept for the period of prefixes, too. A creation without a key or subject has no limit for it.
func (a *Admissions) setKept(c Counted, limits Limits) {
	numbers := max(limits.PerPhoneNumber.Period, limits.PerPrefix.Period)
	a.numbers.kept = a.keptFor(numbers)
	a.prefixes.kept = a.keptFor(limits.PerPrefix.Period)
	if c.KeyName != "" {
		a.keys.kept = a.keptFor(max(limits.PerKey.Period, numbers))
	}
	if c.Subject != "" {
		a.subjects.kept = a.keptFor(limits.PerSubject.Period)
	}
}

// setDigits counts by prefixes of another length from now on, beginning with the numbers and keys that are kept.
func (a *Admissions) setDigits(rate PrefixRate, now time.Time) {
	digits := 0
	if rate.Limited() {
		digits = rate.Digits
	}
	if digits == a.digits {
		return
	}
	a.prefixes, a.digits = newWindows[PrefixGroup](max(a.prefixes.kept, a.keptFor(rate.Period))), digits
	if digits == 0 {
		return
	}
	keys := make(map[string]string) // by id
	for key, element := range a.keys.byKey {
		for _, admitted := range windowOf[string](element).admissions {
			keys[admitted.id] = key
		}
	}
	for number, element := range a.numbers.byKey {
		for _, admitted := range windowOf[phone.Number](element).admissions {
			c := Counted{KeyName: keys[admitted.id], Phone: number}
			a.prefixes.add(a.groupOf(c), admitted.id, time.UnixMicro(admitted.at), now)
		}
	}
}
