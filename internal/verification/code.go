package verification

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"strings"
	"unicode"

	"github.com/phoneproof/phoneproof/internal/redact"
)

const (
	// alphabet is Crockford's base 32: no I, L, O or U, so no two symbols look alike and no code spells a word by
	// accident. Extraction reads I and L as 1 and O as 0.
	alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

	// codeSymbols is the length of a code: 13 symbols of 5 random bits (65 bits) and 3 symbols of check bits (15 bits).
	codeSymbols   = 16
	randomSymbols = 13
	groupSymbols  = 4

	// idSymbols base-32 symbols carry 120 bits of the keyed hash: unguessable, and short enough for an object name.
	idPrefix  = "vr"
	idSymbols = 24

	// subjectBytes of a keyed hash tell subjects apart.
	subjectBytes = 12
)

// lowerBase32 makes ids that are valid Kubernetes object names.
var lowerBase32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Code is the secret of one request: to send it from the right number verifies the number. It is never stored and never
// logged, and only Grouped shows it.
type Code struct{ redact.Value[symbols] }

// symbols are those of a code, without hyphens.
type symbols [codeSymbols]byte

func newCode(s symbols) Code { return Code{redact.New(s)} }

// Grouped returns the code as an end user sees it, in groups of four: XXXX-XXXX-XXXX-XXXX. The form is also a valid
// Telegram deep-link payload (A-Z a-z 0-9 _ -, at most 64 characters).
func (c Code) Grouped() string {
	grouped := make([]byte, 0, codeSymbols+codeSymbols/groupSymbols-1)
	for i, symbol := range c.Reveal() {
		if i > 0 && i%groupSymbols == 0 {
			grouped = append(grouped, '-')
		}
		grouped = append(grouped, symbol)
	}
	return string(grouped)
}

// CodeSpace makes the codes and request ids of one project, and finds its codes in texts.
type CodeSpace struct {
	name string
	key  [sha256.Size]byte
	// deliveredDigits is how many digits are sent to a number. Only a test of guessing has fewer.
	deliveredDigits int
}

// NewCodeSpace returns the code space of the project "namespace/name". Its key is SHA-256 of the name: a filter against typos and
// other people's messages, not a secret.
func NewCodeSpace(namespacedName string) CodeSpace {
	return CodeSpace{name: namespacedName, key: sha256.Sum256([]byte(namespacedName)), deliveredDigits: deliveredDigits}
}

// Name returns "namespace/name".
func (space CodeSpace) Name() string { return space.name }

// NewCode returns a fresh code of 65 random bits read from random.
func (space CodeSpace) NewCode(random io.Reader) (Code, error) {
	var bits [randomSymbols]byte
	if _, err := io.ReadFull(random, bits[:]); err != nil {
		return Code{}, fmt.Errorf("read random bits: %w", err)
	}
	return space.codeOf(bits), nil
}

// CodeFor returns the code that belongs to an Idempotency-Key, so a retry meets the request that its first try made.
// apiKeyHash is the SHA-256 of the presented API key: without the key the code cannot be computed.
func (space CodeSpace) CodeFor(apiKeyHash [sha256.Size]byte, idempotencyKey string) Code {
	mac := hmac.New(sha256.New, apiKeyHash[:])
	// A project's name has no NUL, so the pair cannot be confused with another.
	io.WriteString(mac, space.name+"\x00"+idempotencyKey) //nolint:errcheck // hash.Hash never returns an error
	return space.codeOf([randomSymbols]byte(mac.Sum(nil)))
}

// fingerprintOf returns the fingerprint of a delivery's number, code and, if a client chose it, messenger, which a repetition is recognized
// by. It needs the API key, so no reader of stored requests finds the code by trying them all.
func (space CodeSpace) fingerprintOf(in Initiation) string {
	mac := hmac.New(sha256.New, in.KeyHash[:])
	// No project's name begins like this, and neither a number nor a code has a NUL.
	mac.Write([]byte("delivery\x00" + space.name + "\x00" + in.Phone.E164() + "\x00" + in.Given.Reveal()))
	if in.Method == Telegram && !in.Signed { // a replay must not have it sent through the other messenger, too
		mac.Write([]byte("\x00" + string(Telegram)))
	}
	return hex.EncodeToString(mac.Sum(nil))[:hashDigits]
}

// deliveryFor returns the code that a delivery has its id from, and its fingerprint.
func (space CodeSpace) deliveryFor(in Initiation) (identity Code, fingerprint string) {
	fingerprint = space.fingerprintOf(in)
	name := "\x00delivery\x00" + fingerprint // no header has a NUL
	if in.HasIdempotencyKey {
		name = "\x00delivery key\x00" + in.IdempotencyKey
	}
	return space.CodeFor(in.KeyHash, name), fingerprint
}

// SubjectHash returns what a subject is counted by and stored as. It is keyed by the SHA-256 of the presented API key, so
// no reader of stored requests finds an address or a user id by trying them all.
func (space CodeSpace) SubjectHash(apiKeyHash [sha256.Size]byte, subject string) string {
	mac := hmac.New(sha256.New, apiKeyHash[:])
	// No project's name begins like this, so no subject meets an Idempotency-Key; see CodeFor.
	io.WriteString(mac, "subject\x00"+space.name+"\x00"+subject) //nolint:errcheck // hash.Hash never returns an error
	return hex.EncodeToString(mac.Sum(nil)[:subjectBytes])
}

// codeOf makes a code of the low five bits of each byte and appends the check symbols.
func (space CodeSpace) codeOf(bits [randomSymbols]byte) Code {
	var s symbols
	for i, b := range bits {
		s[i] = alphabet[b&31]
	}
	check := space.checkSymbols(s[:randomSymbols])
	copy(s[randomSymbols:], check[:])
	return newCode(s)
}

// isValid reports whether the check symbols belong to this project and to the symbols before them.
func (space CodeSpace) isValid(s symbols) bool {
	check := space.checkSymbols(s[:randomSymbols])
	return subtle.ConstantTimeCompare(check[:], s[randomSymbols:]) == 1
}

// checkSymbols returns the three check symbols: a plain hash over key and symbols, because it runs for every word of every text
// that arrives, and all its inputs have a fixed length.
func (space CodeSpace) checkSymbols(random []byte) [codeSymbols - randomSymbols]byte {
	var input [len(space.key) + randomSymbols]byte
	copy(input[copy(input[:], space.key[:]):], random)
	sum := sha256.Sum256(input[:])
	return [...]byte{alphabet[sum[0]&31], alphabet[sum[1]&31], alphabet[sum[2]&31]}
}

// RequestID returns the id of the request that a code belongs to, so a message leads to its request by one keyed
// read in every store. It is 120 bits of HMAC-SHA256(key, code) and a valid object name.
func (space CodeSpace) RequestID(c Code) string {
	mac := hmac.New(sha256.New, space.key[:])
	s := c.Reveal()
	mac.Write(s[:])
	var id [len(idPrefix) + idSymbols]byte
	lowerBase32.Encode(id[copy(id[:], idPrefix):], mac.Sum(nil)[:idSymbols*5/8])
	return string(id[:])
}

// IsRequestID reports whether id has the shape of a request id: a cheap filter in front of every store read.
func IsRequestID(id string) bool {
	if len(id) != len(idPrefix)+idSymbols || id[:len(idPrefix)] != idPrefix {
		return false
	}
	for _, c := range []byte(id[len(idPrefix):]) {
		if (c < 'a' || c > 'z') && (c < '2' || c > '7') {
			return false
		}
	}
	return true
}

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
