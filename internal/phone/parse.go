package phone

import "github.com/nyaruka/phonenumbers"

// Parse parses a number from the API's client. It must include its country code; a leading plus is optional. Spaces,
// hyphens, dots, slashes and parentheses are dropped, and so is a national prefix after the country code, as in
// +44 (0)20, if the numbering plan has it. What users paste counts as its ASCII form: the decimal digits of any script,
// all of Unicode's spaces and dashes, full-width forms of the plus and the separators, and invisible marks, which are
// dropped, and so are tabs and line ends around the number. Everything else is refused with an *Error, and so are more than 32
// characters after trimming.
//
// The number must be valid in its country, or be the other form of a valid number (see Variants): clients have +52 1 and
// eight-digit Brazilian mobiles in old address books, and WhatsApp still uses both. Such a number is kept as given,
// because the answer must show the client its own number.
//
// One rule decides which lines are accepted: the user sends us a message, so a doubtful line costs nothing and is accepted.
// Lines that cannot send one, or would be expensive to call later, are refused.
//
//   - Accepted: mobile, landline (WhatsApp works on them), VoIP, personal numbers, national toll-free, shared-cost and
//     universal access numbers (businesses have WhatsApp accounts on them), and the satellite and global networks +870,
//     +878, +881, +882, +883, which have subscribers.
//   - Refused: premium rate and +979; +888; pagers and voicemail boxes; +800 and +808, which only forward to a line that
//     has a number of its own; short codes, which have no international form.
func Parse(input string) (Number, error) {
	n, refused := scanDigits(input)
	if refused == nil {
		refused = checkRange(n)
	}
	if refused != nil {
		return Number{}, refused
	}
	n, line := findInPlan(n)
	if refused = checkLine(n, line); refused != nil {
		return Number{}, refused
	}
	return n, nil
}

// checkRange refuses unassigned country codes, and those of services that belong to no country.
func checkRange(n Number) *Error {
	code, _ := n.countryCode()
	switch code {
	case 0x888:
		return errAnonymous
	case 0x979:
		return errPremium
	case 0x800, 0x808:
		return errService
	}
	if !isAssigned(code) {
		return errUnknown
	}
	return nil
}

// findInPlan returns the kind of line, and the number without a national prefix if only that makes it valid. The
// client's form is tried first, so that a number that is valid as given is never rewritten, and Parse of a result
// returns that result.
func findInPlan(n Number) (Number, phonenumbers.PhoneNumberType) {
	if line := lineType(n); line != phonenumbers.UNKNOWN {
		return n, line
	}
	if other, ok := n.otherForm(); ok {
		if line := lineType(other); line != phonenumbers.UNKNOWN {
			return n, line
		}
	}
	bare, ok := withoutNationalPrefix(n)
	if !ok {
		return n, phonenumbers.UNKNOWN
	}
	if line := lineType(bare); line != phonenumbers.UNKNOWN {
		return bare, line
	}
	return n, phonenumbers.UNKNOWN
}

func checkLine(n Number, line phonenumbers.PhoneNumberType) *Error {
	switch line {
	case phonenumbers.PREMIUM_RATE:
		return errPremium
	case phonenumbers.PAGER, phonenumbers.VOICEMAIL:
		return errService
	case phonenumbers.UNKNOWN:
		return outsidePlan(Canonical(n)) // The old form is not the mistake.
	}
	return nil
}
