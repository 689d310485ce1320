// Package phone holds the one form in which every other package sees a
// telephone number, and decides which numbers a client may ask to verify, what
// a messenger may report, and when two numbers are the same line.
//
// The invariant: a Number is either none (its zero value) or 5 to 15 digits in
// E.164 form that do not start with zero, and its digits leave this package only
// through E164 and Digits. Every other way to print it (fmt, slog, a dump of the
// struct around it) shows a masked form or nothing readable, and encoders that
// would write something else by accident get an error.
package phone

import (
	"math/bits"
	"strconv"
)

// ITU-T E.164 allows 15 digits. No line has fewer than 7, but WhatsApp ids are
// specified down to 5, so that is the least a Number can hold.
const (
	minDigits = 5
	maxDigits = 15
)

// Number is a telephone number in E.164 form; its zero value means none. It is
// eight bytes, comparable, and usable as a map key. Two Numbers are == when they
// are equal digit by digit; whether they are the same line is what Same answers.
type Number struct {
	// The digits in binary-coded decimal (see bcd), rotated. fmt cannot call
	// methods on unexported fields, so %+v and %#v of a struct around a Number
	// dump this field; neither the decimal nor the hexadecimal form of it shows
	// the digits, as a string would.
	rotated uint64
}

// rotation is no multiple of four, so that hexadecimal shows no digits.
const rotation = 31

// FromE164 reads back what E164 wrote, for values that come from a store. It
// checks the shape (a plus, then 5 to 15 digits, the first not zero), because a
// store can be edited by hand, but not the numbering plan: a number accepted
// yesterday stays readable when the plan changes.
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

// Digits returns the number without the plus, the form that wa.me links and the
// WhatsApp API take, or "" for none.
func (n Number) Digits() string {
	if n.IsZero() {
		return ""
	}
	return strconv.FormatUint(n.bcd(), 16)
}

// IsZero reports whether n is none.
func (n Number) IsZero() bool { return n.rotated == 0 }

// fromBCD makes a Number of one decimal digit per four bits, the last digit
// lowest. The first digit is never zero, so the length needs no field and
// prefixes are shifts.
func fromBCD(bcd uint64) Number { return Number{bits.RotateLeft64(bcd, rotation)} }

// bcd is the inverse of fromBCD; in hexadecimal it spells the number.
func (n Number) bcd() uint64 { return bits.RotateLeft64(n.rotated, -rotation) }

// fromDigits reads bare ASCII digits, nothing else.
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

// firstDigits returns the first k digits as BCD, so that 0x55 reads as fifty-five.
func (n Number) firstDigits(k int) uint64 {
	if drop := n.countDigits() - k; drop > 0 {
		return n.bcd() >> (4 * drop)
	}
	return n.bcd()
}

// lastDigits returns the last k digits as BCD.
func (n Number) lastDigits(k int) uint64 { return n.bcd() & (1<<(4*k) - 1) }
