// Package testnumbers has the phone numbers that test keys take, and the outcome that each of them stands for.
//
// The invariant: every number is of the range 555-0100 to 555-0199, which the North American numbering plan reserves for fiction, so
// it belongs to no user; and a number never changes its outcome, because clients keep them in their tests.
package testnumbers

import (
	"slices"
	"time"

	"github.com/phoneproof/phoneproof/internal/phone"
)

// Outcome is what becomes of the test request for a number. It is a label of metrics.
type Outcome string

// The outcomes.
const (
	// VerifiedAtOnce is a message from the claimed number, in the moment in which the request is stored.
	VerifiedAtOnce Outcome = "verified_at_once"
	// VerifiedLater is that message after Delay.
	VerifiedLater Outcome = "verified_later"
	// Expired is no message at all.
	Expired Outcome = "expired"
	// NumberHidden is a message whose sender hides the number, and nothing after it.
	NumberHidden Outcome = "number_hidden"
	// OtherNumber is a message from another number, and nothing after it.
	OtherNumber Outcome = "other_number"
	// Declined is the answer "Not me" of the owner of the claimed number.
	Declined Outcome = "declined"
)

const (
	// Delay is how long VerifiedLater takes.
	Delay = 5 * time.Second
	// ShortLife is how long a request lasts at most that nothing verifies, so that tests of clients do not wait for long.
	ShortLife = 10 * time.Second
)

// Entry is a number with its outcome.
type Entry struct {
	Number  phone.Number
	Outcome Outcome
	// Means is the outcome in words.
	Means string
}

var entries = []Entry{
	{parse("+12025550110"), VerifiedAtOnce, "verified at once"},
	{parse("+12025550111"), VerifiedLater, "verified after 5 seconds"},
	{parse("+12025550112"), Expired, "no message comes: expired after 10 seconds"},
	{parse("+12025550113"), NumberHidden, "the sender hides the number: hint NUMBER_HIDDEN, expired after 10 seconds"},
	{parse("+12025550114"), OtherNumber, "the message comes from another number: hint OTHER_NUMBER, expired after 10 seconds"},
	{parse("+12025550115"), Declined, `the owner answers "Not me": expired at once, with hint DECLINED`},
}

// parse returns a number of the table.
func parse(e164 string) phone.Number {
	n, err := phone.FromE164(e164)
	if err != nil {
		panic(err)
	}
	return n
}

// All returns the numbers in the order in which they are documented.
func All() []Entry { return slices.Clone(entries) }

// OutcomeOf returns the outcome of a number; false for one that is no test number.
func OutcomeOf(n phone.Number) (Outcome, bool) {
	for _, e := range entries {
		if e.Number == n {
			return e.Outcome, true
		}
	}
	return "", false
}

// TTL returns how long the request of an outcome lasts in a project whose requests last for ttl.
func (o Outcome) TTL(ttl time.Duration) time.Duration {
	switch o {
	case Expired, NumberHidden, OtherNumber:
		return min(ttl, ShortLife)
	default:
		return ttl
	}
}

// After returns how long after the creation of a request its outcome is played; false if nothing is to be done before its end.
func (o Outcome) After() (time.Duration, bool) {
	switch o {
	case VerifiedAtOnce, NumberHidden, OtherNumber, Declined:
		return 0, true
	case VerifiedLater:
		return Delay, true
	default:
		return 0, false
	}
}
