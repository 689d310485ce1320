// Package phone has the type of all telephone numbers in this program. It decides which numbers a client may verify, which
// ones a messenger may report, and when two numbers are the same line.
//
// The invariant: a Number is either none (its zero value) or 5 to 15 digits in E.164 form that do not start with zero, and
// its digits leave this package only through E164 and Digits. Any other way to print it (fmt, slog, a dump of the struct
// around it) shows a masked form or nothing readable, and encoders that would write something else get an error.
package phone

import (
	"math/bits"
	"strconv"
)

// ITU-T E.164 allows 15 digits. No line has fewer than 7, but the specification of WhatsApp ids allows 5.
const (
	minDigits = 5
	maxDigits = 15
)

// Number is a telephone number in E.164 form; its zero value means none. It has eight bytes, and is comparable and
// usable as a map key. Two Numbers are == if all digits are equal; Same reports whether they are the same line.
type Number struct {
	// The digits in binary-coded decimal (see bcd), rotated. fmt cannot call methods of unexported fields, so %+v and
	// %#v of a struct around a Number print this field; its decimal and hexadecimal forms do not show the digits, as a
	// string would.
	rotated uint64
}

// rotation is not a multiple of four, so that hexadecimal shows no digits.
const rotation = 31

// FromE164 parses the result of E164, for values from a store. It checks the shape (a plus, then 5 to 15 digits, the
// first not zero), because users can edit a store. It does not check the numbering plan: a number accepted yesterday
// stays readable when the plan changes.
func FromE164(stored string) (Number, error) {
	if stored == "" || stored[0] != '+' {
		return Number{}, errStored
	}
	n, ok := fromDigits(stored[1:])
	if !ok {
		return Number{}, errStored
	}
	return n, nil
}

// E164 returns the number with its leading plus, or "" for none.
func (n Number) E164() string {
	if n.IsZero() {
		return ""
	}
	buf := [maxDigits + 1]byte{'+'}
	return string(strconv.AppendUint(buf[:1], n.bcd(), 16))
}

// Digits returns the number without the plus, as wa.me links and the WhatsApp API expect it, or "" for none.
func (n Number) Digits() string {
	if n.IsZero() {
		return ""
	}
	return strconv.FormatUint(n.bcd(), 16)
}

// IsZero reports whether n is none.
func (n Number) IsZero() bool { return n.rotated == 0 }

// fromBCD returns the Number of a BCD value: one decimal digit per four bits, the last digit lowest. The first digit is
// never zero, so the length needs no field and prefixes are shifts.
func fromBCD(bcd uint64) Number { return Number{bits.RotateLeft64(bcd, rotation)} }

// bcd is the inverse of fromBCD; in hexadecimal it shows the number.
func (n Number) bcd() uint64 { return bits.RotateLeft64(n.rotated, -rotation) }

// fromDigits parses ASCII digits without a plus or separators.
func fromDigits(s string) (Number, bool) {
	if len(s) < minDigits || len(s) > maxDigits || s[0] == '0' {
		return Number{}, false
	}
	var bcd uint64
	for i := range len(s) {
		if !isDigit(s[i]) {
			return Number{}, false
		}
		bcd = appendDigit(bcd, s[i])
	}
	return fromBCD(bcd), true
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// appendDigit appends one ASCII digit.
func appendDigit(bcd uint64, c byte) uint64 { return bcd<<4 | uint64(c-'0') }

// countDigits returns how many digits n has.
func (n Number) countDigits() int { return (bits.Len64(n.bcd()) + 3) / 4 }

// firstDigits returns the first k digits as BCD, so 0x55 means fifty-five.
func (n Number) firstDigits(k int) uint64 {
	if drop := n.countDigits() - k; drop > 0 {
		return n.bcd() >> (4 * drop)
	}
	return n.bcd()
}

// lastDigits returns the last k digits as BCD.
func (n Number) lastDigits(k int) uint64 { return n.bcd() & (1<<(4*k) - 1) }
