package verification

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxOtherCharacters is how many characters a message may hold beside the prepared text: room for a greeting or a
// signature, not for another story.
const MaxOtherCharacters = 40

// HoldsPrepared reports whether a message holds the text that was prepared, in one piece, and at most MaxOtherCharacters
// others. What keyboards and messengers change by themselves does not count, on either side: case, spaces and line breaks,
// punctuation, quotes and dashes, invisible characters, and the forms of one character. Emoji are characters.
func HoldsPrepared(message, prepared string) bool {
	if len(message) > utf8.UTFMax*maxExtractRunes {
		return false
	}
	text, want := plain(message), plain(prepared)
	return want != "" && strings.Contains(text, want) &&
		utf8.RuneCountInString(text)-utf8.RuneCountInString(want) <= MaxOtherCharacters
}

// plain returns what of a text counts when two are compared.
func plain(text string) string {
	// Once more after the forms are unified: some of them hold spaces and punctuation.
	return strings.Map(plainRune, norm.NFKC.String(strings.Map(counted, text)))
}

// plainRune folds case, and the letters that stand for digits in a code.
func plainRune(r rune) rune {
	switch r = counted(unicode.ToLower(unicode.ToUpper(r))); r {
	case 'o':
		return '0'
	case 'i', 'l':
		return '1'
	default:
		return r
	}
}

// counted returns the rune, or -1 if it does not count.
func counted(r rune) rune {
	switch {
	case r >= 'ʹ' && r <= 'ʿ', r == '−': // apostrophes that are letters, and a dash that is mathematics
		return -1
	case unicode.In(r, unicode.Z, unicode.Cc, unicode.Cf, unicode.P, unicode.Sk,
		unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
		return -1
	default:
		return r
	}
}
