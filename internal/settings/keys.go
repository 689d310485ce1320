package settings

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
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

// Key is an API key. Its value is not kept, only its SHA-256.
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

// Keys are the API keys of a project.
type Keys struct {
	keys []Key
}

// Find returns the key that was presented: ErrKeyUnknown or ErrKeyExpired otherwise. Each stored hash is compared in
// constant time and none is skipped, so the time tells nothing about which one came close.
func (k Keys) Find(presented string, now time.Time) (Key, error) {
	hash := sha256.Sum256([]byte(presented))
	found := -1
	for i := range k.keys {
		if subtle.ConstantTimeCompare(k.keys[i].Hash[:], hash[:]) == 1 {
			found = i
		}
	}
	switch {
	case found < 0, lapsed(k.keys[found].until, now):
		return Key{}, ErrKeyUnknown
	case lapsed(k.keys[found].ExpiresAt, now):
		return Key{}, ErrKeyExpired
	default:
		return k.keys[found], nil
	}
}

// lapsed tells whether an end, if there is one, has come.
func lapsed(end, now time.Time) bool { return !end.IsZero() && !now.Before(end) }
