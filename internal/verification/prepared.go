package verification

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxOtherCharacters is how many characters a message may hold beside the prepared text: room for a greeting or a
// signature, not for another message.
const MaxOtherCharacters = 40

// prolongedSound is a letter of Japanese names, and what Japanese keyboards write for a hyphen: it is that after ASCII.
const prolongedSound = 'ー'

// HoldsPrepared reports whether a message holds one of the texts that were prepared, in one piece, and at most MaxOtherCharacters
// others. What keyboards and messengers change by themselves does not count, on either side: case, spaces and line breaks,
// punctuation, quotes and dashes, invisible characters, and the forms of one character. Emoji are characters.
//
// A sender chooses how long the message is, so what is costly about it is done once for all texts.
func HoldsPrepared(message string, prepared iter.Seq[string]) bool {
	if len(message) > utf8.UTFMax*maxExtractRunes {
		return false
	}
	text := comparableText(message)
	length := utf8.RuneCountInString(text)
	for one := range prepared {
		want := comparableText(one)
		if want != "" && strings.Contains(text, want) && length-utf8.RuneCountInString(want) <= MaxOtherCharacters {
			return true
		}
	}
	return false
}

// comparableText returns the characters of a text that count in a comparison.
func comparableText(text string) string {
	var before rune
	// Again after the forms are unified, because some of them hold spaces and punctuation.
	return strings.Map(func(r rune) rune {
		r = comparableRune(r)
		if r == prolongedSound && before < utf8.RuneSelf {
			return -1
		}
		if r >= 0 {
			before = r
		}
		return r
	}, norm.NFKC.String(strings.Map(countedRune, text)))
}

// comparableRune folds case, and the letters that stand for digits in a code.
func comparableRune(r rune) rune {
	switch r = countedRune(unicode.ToLower(unicode.ToUpper(r))); r {
	case 'o':
		return '0'
	case 'i', 'l':
		return '1'
	default:
		return r
	}
}

// countedRune returns the rune, or -1 if it does not count.
func countedRune(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9': // most of them: tables take much longer
		return r
	case r >= 'ʹ' && r <= 'ʿ', r == '−': // apostrophes that are letters, and a dash that is mathematics
		return -1
	case unicode.In(r, unicode.Z, unicode.Cc, unicode.Cf, unicode.P, unicode.Sk,
		unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
		return -1
	default:
		return r
	}
}
