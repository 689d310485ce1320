package phone

import (
	"unicode"
	"unicode/utf8"
)

// unknownRune stands for a character outside ASCII that has no place in a number.
const unknownRune = utf8.RuneSelf

// normalizeRune returns the ASCII character that the first character of text stands for, and its size in bytes. Address
// books, web pages and keyboards put such characters into numbers, and users cannot see most of them. Marks that take no
// space become separators, and a character that stands for nothing becomes unknownRune.
func normalizeRune(text string) (c byte, size int) {
	r, size := utf8.DecodeRuneInString(text)
	switch {
	case isBlank(r):
		return ' ', size
	case r == '\u2212', unicode.Is(unicode.Pd, r): // a minus sign, and the dashes
		return '-', size
	case isFullWidth(r):
		return byte(r - '！' + '!'), size //nolint:gosec // these five are in ASCII then
	}
	return normalizeDigit(r), size
}

// isBlank reports whether r is a space, a tab, part of a line's end, or a mark without width.
func isBlank(r rune) bool {
	return r == '\t' || r == '\r' || r == '\n' || isInvisible(r) || unicode.Is(unicode.Zs, r)
}

// isInvisible reports whether r is a mark of direction or one without width, as they surround numbers that were copied.
func isInvisible(r rune) bool {
	switch {
	case r == '\u00ad', r == '\u061c', r == '\ufeff': // soft hyphen, Arabic letter mark, byte order mark
		return true
	case r >= '\u200b' && r <= '\u200f', r >= '\u202a' && r <= '\u202e', r >= '\u2060' && r <= '\u2064', r >= '\u2066' && r <= '\u2069':
		return true
	}
	return false
}

// isFullWidth reports whether r is the full-width form of a plus or of a separator.
func isFullWidth(r rune) bool {
	switch r {
	case '＋', '（', '）', '．', '／':
		return true
	}
	return false
}

// normalizeDigit returns the ASCII form of a decimal digit of any script, or unknownRune.
func normalizeDigit(r rune) byte {
	for _, run := range unicode.Nd.R16 {
		if first := rune(run.Lo); first <= r && r <= rune(run.Hi) {
			return asciiDigit(r - first)
		}
	}
	for _, run := range unicode.Nd.R32 {
		if first := rune(run.Lo); first <= r && r <= rune(run.Hi) { //nolint:gosec // code points fit
			return asciiDigit(r - first)
		}
	}
	return unknownRune
}

// asciiDigit returns the digit that stands so far from the first one of a range. Unicode has the digits of a script in one
// run, from zero to nine, and runs that touch each other are one range.
func asciiDigit(offset rune) byte { return '0' + byte(offset%10) } //nolint:gosec // one digit

// ASCIIDigit returns the ASCII form of a decimal digit of any script; false for any other character.
func ASCIIDigit(r rune) (digit byte, ok bool) {
	if r >= '0' && r <= '9' {
		return byte(r), true
	}
	digit = normalizeDigit(r)
	return digit, digit != unknownRune
}
