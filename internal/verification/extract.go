package verification

import (
	"net/url"
	"strings"
	"unicode"
)

const (
	// maxExtractRunes bounds the text that is searched: both messengers end a text at 4,096 characters.
	maxExtractRunes = 4096

	// keyboardHyphens are what keyboards write for a hyphen, beside the dashes of Unicode: the minus sign, the prolonged sound mark
	// and the middle dot of Japanese ones in both widths, the middle dot, and bullets.
	keyboardHyphens = "−ーｰ・･·•⁃"
)

// Extract returns the code in a free text, and false if there is none. It tolerates what messengers, keyboards and people
// do to a text: any case, spaces, line breaks, hyphens and dashes between symbols, invisible characters, full-width forms,
// percent-encoding, and words in any language around the code. A code must begin and end where a word does.
//
// Of several codes the last one counts, so a text leads to one request and costs one read. Words can pass for a code by
// chance, and those of the prepared text, which are always the same, stand before its code.
func (space CodeSpace) Extract(text string) (Code, bool) {
	var (
		last    *symbols
		scanner wordScanner
	)
	for _, r := range decodeLinks(firstRunes(text, maxExtractRunes)) {
		switch kind, symbol := classifyRune(r); kind {
		case runeSymbol:
			scanner.add(symbol)
		case runeIgnored:
		case runeSeparator:
			last = space.laterCode(last, scanner.endWord())
		default:
			last = space.laterCode(last, scanner.endWord())
			scanner.reset()
		}
	}
	if last = space.laterCode(last, scanner.endWord()); last == nil {
		return Code{}, false
	}
	return newCode(*last), true
}

// decodeLinks returns a text with the percent-encoding of each word undone, once: users paste the link in place of its text. Whose
// link it is does not matter, because the check symbols of a code name its project.
func decodeLinks(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	words := strings.Fields(text)
	for i, word := range words {
		if decoded, err := url.PathUnescape(word); err == nil {
			words[i] = decoded
		}
	}
	return strings.Join(words, " ")
}

// firstRunes returns the first n characters of a text.
func firstRunes(text string, n int) string {
	for at := range text {
		if n--; n < 0 {
			return text[:at]
		}
	}
	return text
}

// laterCode returns candidate if it is a code of this project, else last.
func (space CodeSpace) laterCode(last, candidate *symbols) *symbols {
	if candidate == nil || !space.isValid(*candidate) {
		return last
	}
	return candidate
}

// wordScanner remembers the last 16 symbols and at which of them a word began. A candidate is a sequence of whole words
// with 16 symbols together, so a text costs at most one check per word, whatever it holds.
type wordScanner struct {
	symbols symbols
	starts  [codeSymbols]bool
	length  int // symbols since the last reset
	inWord  bool
}

func (s *wordScanner) add(symbol byte) {
	at := s.length % codeSymbols
	s.symbols[at] = symbol
	s.starts[at] = !s.inWord
	s.inWord = true
	s.length++
}

// endWord ends the current word and returns the candidate that ends with it, or nil.
func (s *wordScanner) endWord() *symbols {
	if !s.inWord {
		return nil
	}
	s.inWord = false
	first := s.length % codeSymbols
	if s.length < codeSymbols || !s.starts[first] {
		return nil
	}
	var code symbols
	n := copy(code[:], s.symbols[first:])
	copy(code[n:], s.symbols[:first])
	return &code
}

func (s *wordScanner) reset() { *s = wordScanner{} }

type runeKind int

const (
	runeOther     runeKind = iota // ends the word and everything before it
	runeSymbol                    // part of a code
	runeSeparator                 // may stand between the symbols of a code
	runeIgnored                   // as if it were not there
)

// classifyRune returns what a rune means to a code, and which symbol it is.
func classifyRune(r rune) (runeKind, byte) {
	if r >= '！' && r <= '～' { // full-width forms of ASCII, as East Asian keyboards write them
		r -= '！' - '!'
	}
	if r < unicode.MaxASCII {
		if symbol := symbolOf[r]; symbol != 0 {
			return runeSymbol, symbol
		}
	}
	switch {
	case unicode.IsSpace(r), unicode.In(r, unicode.Pd, unicode.Zs), r == '_', strings.ContainsRune(keyboardHyphens, r):
		return runeSeparator, 0
	case unicode.In(r, unicode.Cf, unicode.Mn): // zero-width, bidi marks, soft hyphen, variation selectors
		return runeIgnored, 0
	default:
		return runeOther, 0
	}
}

// symbolOf maps ASCII to the symbol it stands for, 0 if it stands for none.
var symbolOf = func() (table [unicode.MaxASCII]byte) {
	for _, symbol := range []byte(alphabet) {
		table[symbol] = symbol
		table[unicode.ToLower(rune(symbol))] = symbol
	}
	for _, alias := range []struct{ from, to byte }{{'O', '0'}, {'o', '0'}, {'I', '1'}, {'i', '1'}, {'L', '1'}, {'l', '1'}} {
		table[alias.from] = alias.to
	}
	return table
}()
