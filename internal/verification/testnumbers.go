package verification

import (
	"slices"
	"time"

	"github.com/phoneproof/phoneproof/internal/phone"
)

// TestOutcome is what becomes of the test request for a number. It is a label of metrics.
type TestOutcome string

// The outcomes of test numbers.
const (
	// TestVerifiedAtOnce is a message from the claimed number, in the moment in which the request is stored.
	TestVerifiedAtOnce TestOutcome = "verified_at_once"
	// TestVerifiedLater is that message after testDelay.
	TestVerifiedLater TestOutcome = "verified_later"
	// TestExpired is no message at all.
	TestExpired TestOutcome = "expired"
	// TestNumberHidden is a message whose sender hides the number, and nothing after it.
	TestNumberHidden TestOutcome = "number_hidden"
	// TestOtherNumber is a message from another number, and nothing after it.
	TestOtherNumber TestOutcome = "other_number"
	// TestDeclined is the answer "Not me" of the owner of the claimed number.
	TestDeclined TestOutcome = "declined"
	// TestCodeNotSent is a code that could not be sent, and no message.
	TestCodeNotSent TestOutcome = "code_not_sent"
	// TestCodeUnknown is a code of which it is never known whether it was sent, and no message.
	TestCodeUnknown TestOutcome = "code_unknown"
	// TestCodesLimited is the refusal of a code by a limit. Without DeliverCode it is TestExpired.
	TestCodesLimited TestOutcome = "codes_limited"
)

const (
	// testDelay is how long TestVerifiedLater takes.
	testDelay = 5 * time.Second
	// TestShortLife is how long a request lasts at most that nothing verifies, so that tests of clients do not wait for long.
	TestShortLife = 10 * time.Second
)

// TestNumber is a number with its outcome.
type TestNumber struct {
	Number  phone.Number
	Outcome TestOutcome
	// Means is the outcome in words.
	Means string
}

// testNumbers are of the range 555-0100 to 555-0199, which the North American numbering plan reserves for fiction, so they belong to no
// user. A number never changes its outcome, because clients keep them in their tests.
var testNumbers = []TestNumber{
	{fictional("+12025550110"), TestVerifiedAtOnce, "verified at once"},
	{fictional("+12025550111"), TestVerifiedLater, "verified after 5 seconds"},
	{fictional("+12025550112"), TestExpired, "no message comes: expired after 10 seconds"},
	{fictional("+12025550113"), TestNumberHidden, "the sender hides the number: hint NUMBER_HIDDEN, expired after 10 seconds"},
	{fictional("+12025550114"), TestOtherNumber, "the message comes from another number: hint OTHER_NUMBER, expired after 10 seconds"},
	{fictional("+12025550115"), TestDeclined, `the owner answers "Not me": expired at once, with hint DECLINED`},
	{fictional("+12025550116"), TestCodeNotSent, "a code is not sent: hint CODE_NOT_SENT; expired after 10 seconds"},
	{fictional("+12025550117"), TestCodeUnknown, "it is not known whether a code was sent: codeDelivery UNKNOWN; expired after 10 seconds"},
	{fictional("+12025550118"), TestCodesLimited, "a code is refused: codes_limited; without one, expired after 10 seconds"},
}

// fictional returns a number of the table.
func fictional(e164 string) phone.Number {
	n, err := phone.FromE164(e164)
	if err != nil {
		panic(err)
	}
	return n
}

// TestNumbers returns the numbers that test keys take, in the order in which they are documented.
func TestNumbers() []TestNumber { return slices.Clone(testNumbers) }

// findTestOutcome returns the outcome of a number; false for one that is no test number.
func findTestOutcome(n phone.Number) (TestOutcome, bool) {
	for _, e := range testNumbers {
		if e.Number == n {
			return e.Outcome, true
		}
	}
	return "", false
}

// ttl returns how long the request of an outcome lasts in a project whose requests last for ttl.
func (o TestOutcome) ttl(ttl time.Duration) time.Duration {
	switch o {
	case TestExpired, TestNumberHidden, TestOtherNumber, TestCodeNotSent, TestCodeUnknown, TestCodesLimited:
		return min(ttl, TestShortLife)
	default:
		return ttl
	}
}

// after returns how long after the creation of a request its outcome is played; false if nothing is to be done before its end.
func (o TestOutcome) after() (time.Duration, bool) {
	switch o {
	case TestVerifiedAtOnce, TestNumberHidden, TestOtherNumber, TestDeclined, TestCodeNotSent:
		return 0, true
	case TestVerifiedLater:
		return testDelay, true
	default:
		return 0, false
	}
}
