package settings

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"time"
)

// Scope is what an API key may do.
type Scope uint8

// The scopes of spec.apiKeys[].scopes.
const (
	ScopeInit Scope = 1 << iota
	ScopeStatus
)

// Errors of Keys.Find.
var (
	ErrKeyUnknown = errors.New("no such API key")
	ErrKeyExpired = errors.New("the API key is expired")
)

// Key is an API key. Its value is not kept, only its SHA-256, which is not printed either: a key that somebody made up
// could be guessed from it.
type Key struct {
	Name   string
	Hash   [sha256.Size]byte
	Scopes Scope
	// ExpiresAt is when it ends; zero for never.
	ExpiresAt time.Time
	// until is when a replaced value stops being accepted; zero for a current one.
	until time.Time
}

// Has tells whether the key may do what scope names.
func (k Key) Has(scope Scope) bool { return k.Scopes&scope != 0 }

// String returns the name.
func (k Key) String() string { return k.Name }

// Format prints the name for every verb of package fmt.
func (k Key) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, k.Name) }

// MarshalText returns the name.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.Name), nil }

// Keys are the API keys of a project.
type Keys struct {
	keys []Key
}

// NewKeys returns the given keys. Of two with the same hash the first one counts.
func NewKeys(keys ...Key) Keys {
	var out Keys
	for i := range keys {
		if out.indexOf(&keys[i].Hash) < 0 {
			out.keys = append(out.keys, keys[i])
		}
	}
	return out
}

// indexOf returns the place of a hash, or -1. Each stored one is compared in constant time and none is skipped, so the time
// reveals nothing about them.
func (k Keys) indexOf(hash *[sha256.Size]byte) int {
	found := -1
	for i := range k.keys {
		equal := subtle.ConstantTimeCompare(k.keys[i].Hash[:], hash[:])
		found = subtle.ConstantTimeSelect(equal, i, found)
	}
	return found
}

// Find returns the key that was presented: ErrKeyUnknown or ErrKeyExpired otherwise. What cannot be a key by its length
// or checksum is not even hashed.
func (k Keys) Find(presented string, now time.Time) (Key, error) {
	if len(presented) < minAPIKey || len(presented) > maxAPIKey {
		return Key{}, ErrKeyUnknown
	}
	key := []byte(presented)
	if CheckFormat(key) != nil {
		return Key{}, ErrKeyUnknown
	}
	hash := sha256.Sum256(key)
	found := k.indexOf(&hash)
	switch {
	case found < 0, lapsed(k.keys[found].until, now):
		return Key{}, ErrKeyUnknown
	case lapsed(k.keys[found].ExpiresAt, now):
		return Key{}, ErrKeyExpired
	default:
		return k.keys[found], nil
	}
}

// String tells how many keys there are, former values included.
func (k Keys) String() string { return fmt.Sprintf("[%d API keys]", len(k.keys)) }

// Format hides the keys from every verb of package fmt.
func (k Keys) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, k.String()) }

// MarshalText hides the keys from JSON and YAML.
func (k Keys) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// lapsed tells whether an end, if there is one, has come.
func lapsed(end, now time.Time) bool { return !end.IsZero() && !now.Before(end) }
