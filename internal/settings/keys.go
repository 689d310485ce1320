package settings

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Scope is a set of permissions of an API key.
type Scope uint8

// The scopes of spec.apiKeys[].scopes.
const (
	ScopeInit Scope = 1 << iota
	ScopeStatus
	ScopeRead
	ScopeRedeliver
	ScopeDeliver
)

// Errors of Keys.Find and Keys.FindSigner.
var (
	ErrKeyUnknown = errors.New("no such API key")
	ErrKeyExpired = errors.New("the API key is expired")
	// ErrKeysUnavailable is ErrKeyUnknown while the value of an API key is not there, so that the key may be that one, or while a signing
	// secret cannot be used.
	ErrKeysUnavailable = errors.New("the values of some API keys are not available")
)

// Key is an API key. Only the SHA-256 of its value is kept. It is not printed either: a key that a person invented could be
// guessed from it.
type Key struct {
	Name   string
	Hash   [sha256.Size]byte
	Scopes Scope
	// Test is set for a key with mode Test.
	Test bool
	// CodeLetters is set if the codes that it has delivered may have letters.
	CodeLetters bool
	// ExpiresAt is when the key expires; zero for never.
	ExpiresAt time.Time
	// until is when a replaced value stops being accepted; zero for a current one.
	until time.Time
	// signing is what the calls of an identity server are signed with; not usable for an API key.
	signing Secret
}

// Has reports whether the key has the scope.
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
	// signers are the entries with a signing secret. None of these is an API key.
	signers []Key
	// A value that is presented may be one that is not there: until goneUntil, or with awaiting until a rollout brings it.
	goneUntil time.Time
	awaiting  bool
}

// NewKeys returns the given keys. Of two with the same hash, the first is kept.
func NewKeys(keys ...Key) Keys {
	var out Keys
	for i := range keys {
		if out.findIndex(&keys[i].Hash) < 0 {
			out.keys = append(out.keys, keys[i])
		}
	}
	return out
}

// findIndex returns the index of a hash, or -1. It compares all stored hashes in constant time, so that the time leaks
// nothing about near matches.
func (k Keys) findIndex(hash *[sha256.Size]byte) int {
	found := -1
	for i := range k.keys {
		equal := subtle.ConstantTimeCompare(k.keys[i].Hash[:], hash[:])
		found = subtle.ConstantTimeSelect(equal, i, found)
	}
	return found
}

// Find returns the presented key. Its errors are ErrKeyUnknown, ErrKeysUnavailable and ErrKeyExpired. Values whose length or checksum is
// wrong are not hashed.
func (k Keys) Find(presented string, now time.Time) (Key, error) {
	if len(presented) < minAPIKey || len(presented) > maxAPIKey {
		return Key{}, ErrKeyUnknown
	}
	key := []byte(presented)
	if CheckFormat(key) != nil {
		return Key{}, ErrKeyUnknown
	}
	hash := sha256.Sum256(key)
	found := k.findIndex(&hash)
	unknown := found < 0 || hasLapsed(k.keys[found].until, now)
	switch {
	case unknown && (k.awaiting || now.Before(k.goneUntil)):
		return Key{}, ErrKeysUnavailable
	case unknown:
		return Key{}, ErrKeyUnknown
	case hasLapsed(k.keys[found].ExpiresAt, now):
		return Key{}, ErrKeyExpired
	default:
		return k.keys[found], nil
	}
}

// FindSigner returns the entry of that name that has a signing secret. Its errors are ErrKeyUnknown, ErrKeysUnavailable and ErrKeyExpired.
func (k Keys) FindSigner(name string, now time.Time) (Key, error) {
	i := slices.IndexFunc(k.signers, func(signer Key) bool { return signer.Name == name })
	switch {
	case i < 0:
		return Key{}, ErrKeyUnknown
	case hasLapsed(k.signers[i].ExpiresAt, now):
		return k.signers[i], ErrKeyExpired
	case !k.signers[i].signing.Usable():
		return k.signers[i], ErrKeysUnavailable
	default:
		return k.signers[i], nil
	}
}

// IdentifySigner sets Hash to that of the secret that signed a call, which isSigned reports by the secret's key, and reports whether there
// is one. The oldest is tried first, because all replicas know it while a server signs with two.
func (k *Key) IdentifySigner(now time.Time, isSigned func(key []byte) bool) bool {
	for _, secret := range slices.Backward(k.signing.Accepted(now)) {
		if key, err := WebhookKey(secret); err == nil && isSigned(key) {
			k.Hash = sha256.Sum256(secret)
			return true
		}
	}
	return false
}

// DeliverNames returns the names of the keys that may have codes sent, expired ones included, and no test keys.
func (k Keys) DeliverNames() map[string]bool {
	names := map[string]bool{}
	for _, key := range slices.Concat(k.keys, k.signers) {
		if key.Has(ScopeDeliver) && !key.Test {
			names[key.Name] = true
		}
	}
	return names
}

// String returns the number of keys, former values included.
func (k Keys) String() string { return fmt.Sprintf("[%d API keys]", len(k.keys)) }

// Format hides the keys from every verb of package fmt.
func (k Keys) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, k.String()) }

// MarshalText hides the keys from JSON and YAML.
func (k Keys) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// hasLapsed reports whether end is set and has passed.
func hasLapsed(end, now time.Time) bool { return !end.IsZero() && !now.Before(end) }
