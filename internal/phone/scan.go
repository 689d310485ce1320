package phone

import "strings"

// maxInput bounds the text in bytes before it is parsed. The longest E.164 number with a plus and a separator after
// every digit has 31.
const maxInput = 32

// scanDigits returns the digits of a client's text, or the error of a character. Characters are checked before the
// number's shape, because an invalid one makes any count of digits meaningless.
func scanDigits(input string) (Number, *Error) {
	if len(input) > maxInput {
		return Number{}, errInputLong
	}
	var (
		bcd     uint64
		digits  int
		plus    bool
		leading byte
	)
	for i := range len(input) {
		c := input[i]
		switch {
		case isDigit(c):
			if digits == 0 {
				leading = c
			}
			if digits++; digits <= maxDigits {
				bcd = appendDigit(bcd, c)
			}
		case c == '+' && !plus && digits == 0:
			plus = true
		case isSeparator(c):
		default:
			return Number{}, strayError(input, i, digits)
		}
	}
	return fromBCD(bcd), checkShape(digits, leading)
}

// checkShape checks the digits before any numbering plan is used.
func checkShape(digits int, leading byte) *Error {
	switch {
	case digits == 0:
		return errEmpty
	case leading == '0':
		return errNoCountry
	case digits > maxDigits:
		return errDigitsLong
	case digits < minDigits:
		return errShort
	}
	return nil
}

func isSeparator(c byte) bool {
	switch c {
	case ' ', '-', '.', '(', ')', '/':
		return true
	}
	return false
}

// strayError returns the error of the first invalid character, which follows so many digits.
func strayError(input string, at, digits int) *Error {
	c := input[at]
	switch {
	case c >= 0x80:
		return errNotASCII
	case c < ' ' || c == 0x7f:
		return errControl
	case digits == 0 && strings.IndexByte(input[at:], ':') > 0:
		return errURI
	case digits > 0 && startsExtension(input[at:]):
		return errExtension
	}
	return errNotDigits
}

// startsExtension reports whether rest starts like an extension: ;ext=12, x12, ext. 12, #12, or a comma for a pause
// while dialling.
func startsExtension(rest string) bool {
	switch rest[0] {
	case ';', ',', '#', 'x', 'X':
		return true
	}
	return len(rest) >= 3 && strings.EqualFold(rest[:3], "ext")
}
