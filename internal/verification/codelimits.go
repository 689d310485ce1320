package verification

import (
	"time"

	"github.com/phoneproof/phoneproof/internal/phone"
)

// CodeLimits limit how many requests that deliver a code are started through one messenger. Their zero value is that of a project without
// codes there.
type CodeLimits struct {
	// Project is what the project may send in a day, whatever its keys are called and were called before.
	Project Rate
	// PerDay is the key's share of what the project may send in a day, and PerHour a part of it.
	PerDay, PerHour Rate
}

// Limited reports whether they limit anything.
func (l CodeLimits) Limited() bool { return l.PerDay.Limited() || l.PerHour.Limited() }

// codesOfProject is what Admissions count the codes of all keys by. No key has that name.
const codesOfProject = "*"

// codeGroup is what codes are counted by: each messenger has its own limits.
type codeGroup struct {
	method  Method
	keyName string
}

// codeGroups returns the groups of a code: that of its key and that of all keys.
func (c Counted) codeGroups() [2]codeGroup {
	return [...]codeGroup{{c.Method, c.KeyName}, {c.Method, codesOfProject}}
}

// CodesOf returns the limits of codes through a messenger.
func (l Limits) CodesOf(m Method) CodeLimits {
	if m == Telegram {
		return l.GatewayCodes
	}
	return l.Codes
}

// codeNumberRates limit the codes to one number, by its canonical form. No project changes them.
var codeNumberRates = [...]Rate{{1, time.Minute}, {3, time.Hour}, {5, 24 * time.Hour}}

// CodeNumberRates returns how many codes may be sent to one number in each period, the shortest period first.
func CodeNumberRates() []Rate { return codeNumberRates[:] }

// CooldownOf returns how long a creation is refused after the owner of its number answered "Not me". For one that delivers a code it
// is CodeKept at least.
func (l Limits) CooldownOf(c Counted) time.Duration {
	if c.countsAsCode() {
		return max(l.DeclineCooldown, CodeKept)
	}
	return l.DeclineCooldown
}

// CodesLimited returns the refusal of a code by LimitCodes or LimitCodeNumber.
func CodesLimited(limit string, retryAfter time.Duration) error {
	refusal := &Error{Code: CodeCodesLimited, Limit: limit, RetryAfter: retryAfter}
	if limit == LimitCodeNumber {
		refusal.Field = "phoneNumber"
		refusal.Message = "No more codes are sent to this phone number for now. Wait for the time in Retry-After."
		return refusal
	}
	refusal.Message = "This API key or its project has used up the codes that may be sent for now. Wait for the time in Retry-After."
	return refusal
}

// countsAsCode reports whether the creation counts in the limits of codes.
func (c Counted) countsAsCode() bool { return c.Deliver != DeliverNothing && !c.Test }

// addCodeWaits adds the waits of a creation that counts as a code.
func (a *Admissions) addCodeWaits(w *Waits, c Counted, limits CodeLimits, now time.Time) {
	groups := c.codeGroups()
	for _, rate := range [...]Rate{limits.PerDay, limits.PerHour} {
		w.Codes = max(w.Codes, a.codes.retryAfter(groups[0], rate, now))
	}
	w.Codes = max(w.Codes, a.codes.retryAfter(groups[1], limits.Project, now))
	for _, rate := range codeNumberRates {
		w.CodeNumber = max(w.CodeNumber, a.codeNumbers.retryAfter(phone.Canonical(c.Phone), rate, now))
	}
}

// AddCooldown adds the wait after the owner of the number answered "Not me". A code is then refused as by CodeNumberRates.
func (w *Waits) AddCooldown(c Counted, wait time.Duration) {
	if c.countsAsCode() {
		w.CodeNumber = max(w.CodeNumber, wait)
	} else {
		w.Declined = wait
	}
}
