package kubernetes

import (
	"time"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// countCreation adds a creation to every window that it belongs to.
func (l *ledger) countCreation(a admission, created, now time.Time) {
	at := created.UnixMicro()
	l.phones.add(phone.Canonical(a.phone), a.id, at)
	l.phones.sweep(now)
	if a.key != "" {
		l.keys.add(a.key, a.id, at)
		l.keys.sweep(now)
	}
	if l.digits > 0 {
		l.prefixes.add(l.groupOf(a), a.id, at)
		l.prefixes.sweep(now)
	}
	if a.subject != "" {
		l.subjects.add(a.subject, a.id, at)
		l.subjects.sweep(now)
	}
}

// groupOf returns what the admission counts in by its prefix.
func (l *ledger) groupOf(a admission) verification.PrefixGroup {
	return verification.PrefixGroup{KeyName: a.key, Prefix: verification.NumberPrefix(a.phone, l.digits)}
}

// followDigits counts by prefixes of another length from now on, beginning with what is known of the numbers and keys.
func (l *ledger) followDigits(rate verification.PrefixRate) {
	digits := 0
	if rate.Limited() {
		digits = rate.Digits
	}
	if digits == l.digits {
		return
	}
	l.prefixes, l.digits = newTally[verification.PrefixGroup](), digits
	if digits == 0 {
		return
	}
	keys := l.keys.keysByID()
	for number, stamps := range l.phones.byKey {
		prefix := verification.NumberPrefix(number, l.digits)
		for _, s := range stamps {
			l.prefixes.add(verification.PrefixGroup{KeyName: keys[s.id], Prefix: prefix}, s.id, s.at)
		}
	}
}

// waitsOf returns how long each rate asks the admission to wait.
func (l *ledger) waitsOf(a admission, now time.Time) verification.Waits {
	w := verification.Waits{
		Key:         l.keys.wait(a.key, a.limits.PerKey, now),
		PhoneNumber: l.phones.wait(phone.Canonical(a.phone), a.limits.PerPhoneNumber, now),
	}
	if l.digits > 0 {
		w.Prefix = l.prefixes.wait(l.groupOf(a), a.limits.PerPrefix.Rate, now)
	}
	if a.subject != "" {
		w.Subject = l.subjects.wait(a.subject, a.limits.PerSubject, now)
	}
	return w
}

// keepWindows has each window remember for as long as the admission's limits ask.
func (l *ledger) keepWindows(a admission) {
	numbers := max(a.limits.PerPhoneNumber.Period, a.limits.PerPrefix.Period)
	l.phones.setPeriod(numbers) // prefixes are counted anew from numbers, and from whose they were
	l.prefixes.setPeriod(a.limits.PerPrefix.Period)
	if a.key != "" {
		l.keys.setPeriod(max(a.limits.PerKey.Period, numbers)) // without a key there is no limit to go by, whatever the project's is
	}
	if a.subject != "" {
		l.subjects.setPeriod(a.limits.PerSubject.Period)
	}
}
