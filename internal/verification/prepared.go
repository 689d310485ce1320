package verification

import (
	"iter"
	"regexp"
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

// chatLink matches what a link that opens a chat holds, in a text that linkText returns: its host or scheme, the parameter of a draft,
// or a percent-encoded character, which could be any of these.
var chatLink = regexp.MustCompile(`wa\.me/|whatsapp\.com/|whatsapp:|t\.me/|[?&]text=|%[0-9a-f]{2}`)

// HoldsPrepared reports whether a message holds one of the texts that were prepared, in one piece, and at most MaxOtherCharacters
// others. What keyboards and messengers change by themselves does not count, on either side: case, spaces and line breaks,
// punctuation, quotes and dashes, invisible characters, and the forms of one character. Emoji are characters. Among the others
// there must be no link that opens a chat: users paste the link in place of its text.
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
		if want != "" && strings.Contains(text, want) && length-utf8.RuneCountInString(want) <= MaxOtherCharacters &&
			!hasChatLinkBeside(message, one) {
			return true
		}
	}
	return false
}

// hasChatLinkBeside reports whether a message holds a link that opens a chat outside the prepared text. A link of the prepared text
// itself counts, too, if its punctuation was changed.
func hasChatLinkBeside(message, prepared string) bool {
	return chatLink.MatchString(strings.Replace(linkText(message), linkText(prepared), " ", 1))
}

// linkText returns a text without what hides a link in it: case, spaces, invisible characters, and the forms of one character.
func linkText(text string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		switch {
		case r == '。': // browsers take it for the dot of a host
			return '.'
		case unicode.In(r, unicode.Z, unicode.Cc, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
			return -1
		default:
			return r
		}
	}, norm.NFKC.String(text)))
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
