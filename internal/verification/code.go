package verification

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
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

// Code is the secret of one request: whoever sends it from the right number proves the number. It is never stored and
// never logged: String and LogValue hide it, Grouped shows it.
type Code struct {
	symbols [codeSymbols]byte
}

// Grouped returns the code as an end user sees it, in groups of four: XXXX-XXXX-XXXX-XXXX. The form is also a valid
// Telegram deep-link payload (A-Z a-z 0-9 _ -, at most 64 characters).
func (c Code) Grouped() string {
	grouped := make([]byte, 0, codeSymbols+codeSymbols/groupSymbols-1)
	for i, symbol := range c.symbols {
		if i > 0 && i%groupSymbols == 0 {
			grouped = append(grouped, '-')
		}
		grouped = append(grouped, symbol)
	}
	return string(grouped)
}

// String hides the code, so that printing one by accident reveals nothing.
func (c Code) String() string { return "[code]" }

// GoString hides the code from %#v as String does from %v.
func (c Code) GoString() string { return c.String() }

// LogValue hides the code from structured logs.
func (c Code) LogValue() slog.Value { return slog.StringValue(c.String()) }

// Project is the name a project's requests live under, with the key that its codes and ids are made with.
type Project struct {
	name string
	key  [sha256.Size]byte
}

// NewProject returns the project of that "namespace/name". Its key is SHA-256 of the name: a filter against typos and
// messages for somebody else, not a secret.
func NewProject(namespacedName string) Project {
	return Project{name: namespacedName, key: sha256.Sum256([]byte(namespacedName))}
}

// Name returns "namespace/name".
func (p Project) Name() string { return p.name }

// NewCode returns a fresh code of 65 random bits read from random.
func (p Project) NewCode(random io.Reader) (Code, error) {
	var bits [randomSymbols]byte
	if _, err := io.ReadFull(random, bits[:]); err != nil {
		return Code{}, fmt.Errorf("read random bits for a code: %w", err)
	}
	return p.codeOf(bits), nil
}

// CodeFor returns the code that belongs to an Idempotency-Key, so a retry meets the request that its first try made.
// apiKeyHash is the SHA-256 of the presented API key: without the key nobody can compute the code.
func (p Project) CodeFor(apiKeyHash [sha256.Size]byte, idempotencyKey string) Code {
	mac := hmac.New(sha256.New, apiKeyHash[:])
	// A project's name has no NUL, so the pair cannot be confused with another.
	io.WriteString(mac, p.name+"\x00"+idempotencyKey) //nolint:errcheck // hash.Hash never returns an error
	return p.codeOf([randomSymbols]byte(mac.Sum(nil)))
}

// SubjectHash returns what a subject is counted by and stored as. It is keyed by the SHA-256 of the presented API key, so
// no reader of stored requests finds an address or a user id by trying them all.
func (p Project) SubjectHash(apiKeyHash [sha256.Size]byte, subject string) string {
	mac := hmac.New(sha256.New, apiKeyHash[:])
	// No project's name begins like this, so no subject meets an Idempotency-Key; see CodeFor.
	io.WriteString(mac, "subject\x00"+p.name+"\x00"+subject) //nolint:errcheck // hash.Hash never returns an error
	return hex.EncodeToString(mac.Sum(nil)[:subjectBytes])
}

// codeOf makes a code of the low five bits of each byte and appends the check symbols.
func (p Project) codeOf(bits [randomSymbols]byte) Code {
	var code Code
	for i, b := range bits {
		code.symbols[i] = alphabet[b&31]
	}
	check := p.check(code.symbols[:randomSymbols])
	copy(code.symbols[randomSymbols:], check[:])
	return code
}

// valid tells whether the check symbols belong to this project and to the symbols before them.
func (p Project) valid(c Code) bool {
	check := p.check(c.symbols[:randomSymbols])
	return subtle.ConstantTimeCompare(check[:], c.symbols[randomSymbols:]) == 1
}

// check returns the three check symbols: a plain hash over key and symbols, because it runs for every word of every text
// that arrives, and all its inputs have a fixed length.
func (p Project) check(random []byte) [codeSymbols - randomSymbols]byte {
	var input [len(p.key) + randomSymbols]byte
	copy(input[copy(input[:], p.key[:]):], random)
	sum := sha256.Sum256(input[:])
	return [...]byte{alphabet[sum[0]&31], alphabet[sum[1]&31], alphabet[sum[2]&31]}
}

// RequestID returns the id of the request that a code belongs to, so a message leads to its request by one keyed
// read in every store. It is 120 bits of HMAC-SHA256(key, code) and a valid object name.
func (p Project) RequestID(c Code) string {
	mac := hmac.New(sha256.New, p.key[:])
	mac.Write(c.symbols[:])
	return idPrefix + lowerBase32.EncodeToString(mac.Sum(nil)[:idSymbols*5/8])
}

// IsRequestID tells whether id has the shape of a request id: a cheap filter in front of every store read.
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
