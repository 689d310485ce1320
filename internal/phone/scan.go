package phone

import (
	"strings"
	"unicode/utf8"
)

const (
	// maxInput bounds the text in characters before it is parsed. The longest E.164 number with a plus and a separator
	// after every digit has 31.
	maxInput = 32
	// maxInputBytes is the size of maxInput characters, so that a text of any length is refused uncounted.
	maxInputBytes = maxInput * utf8.UTFMax
)

// scanDigits returns the digits of a client's text, or the error of a character. Characters are checked before the
// number's shape, because an invalid one makes any count of digits meaningless. White space around the number does not count.
func scanDigits(input string) (Number, *Error) {
	input = strings.TrimFunc(input, isBlank)
	if isTooLong(input) {
		return Number{}, errInputLong
	}
	var (
		bcd     uint64
		digits  int
		plus    bool
		leading byte
	)
	for at := 0; at < len(input); {
		c, size := input[at], 1
		if c >= utf8.RuneSelf {
			c, size = normalizeRune(input[at:])
		}
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
			return Number{}, strayError(c, input[at:], digits)
		}
		at += size
	}
	return fromBCD(bcd), checkShape(digits, leading)
}

// isTooLong reports whether a text has more than maxInput characters.
func isTooLong(input string) bool {
	return len(input) > maxInput && (len(input) > maxInputBytes || utf8.RuneCountInString(input) > maxInput)
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

// strayError returns the error of the first invalid character c, with which rest begins, after so many digits.
func strayError(c byte, rest string, digits int) *Error {
	switch {
	case c >= utf8.RuneSelf:
		return errNotASCII
	case c < ' ' || c == 0x7f:
		return errControl
	case digits == 0 && strings.IndexByte(rest, ':') > 0:
		return errURI
	case digits > 0 && startsExtension(rest):
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
