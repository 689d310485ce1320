package settings

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
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
	keys    []Key
	digests []digest // of the key with the same index
}

// digest is a SHA-256 in the form in which two are compared fastest.
type digest [4]uint64

func newDigest(hash *[sha256.Size]byte) digest {
	return digest{
		binary.LittleEndian.Uint64(hash[0:]), binary.LittleEndian.Uint64(hash[8:]),
		binary.LittleEndian.Uint64(hash[16:]), binary.LittleEndian.Uint64(hash[24:]),
	}
}

// equal returns 1 if both are the same, else 0, in constant time.
func (d *digest) equal(other *digest) int {
	diff := (d[0] ^ other[0]) | (d[1] ^ other[1]) | (d[2] ^ other[2]) | (d[3] ^ other[3])
	return int(1 ^ ((diff | -diff) >> 63)) //nolint:gosec // 0 or 1
}

// NewKeys returns the given keys. Of two with the same hash the first one counts.
func NewKeys(keys ...Key) Keys {
	var out Keys
	for i := range keys {
		d := newDigest(&keys[i].Hash)
		if out.index(&d) < 0 {
			out.keys = append(out.keys, keys[i])
			out.digests = append(out.digests, d)
		}
	}
	return out
}

// index returns the place of a hash, or -1. Each stored one is compared in constant time and none is skipped, so the
// time tells nothing about which one came close.
func (k Keys) index(d *digest) int {
	found := -1
	for i := range k.digests {
		found = subtle.ConstantTimeSelect(k.digests[i].equal(d), i, found)
	}
	return found
}

// Find returns the key that was presented: ErrKeyUnknown or ErrKeyExpired otherwise. What cannot be a key by its length
// or checksum is not even hashed.
func (k Keys) Find(presented string, now time.Time) (Key, error) {
	if len(presented) < minAPIKey || len(presented) > maxAPIKey || CheckFormat(presented) != nil {
		return Key{}, ErrKeyUnknown
	}
	hash := hashOf(presented)
	d := newDigest(&hash)
	found := k.index(&d)
	switch {
	case found < 0, lapsed(k.keys[found].until, now):
		return Key{}, ErrKeyUnknown
	case lapsed(k.keys[found].ExpiresAt, now):
		return Key{}, ErrKeyExpired
	default:
		return k.keys[found], nil
	}
}

// hashOf copies the key to the stack, because a conversion would be an allocation. Few keys are long: the others do not
// pay for clearing that much.
func hashOf(presented string) [sha256.Size]byte {
	var short [128]byte
	if len(presented) <= len(short) {
		return sha256.Sum256(short[:copy(short[:], presented)])
	}
	return hashOfLong(presented)
}

//go:noinline
func hashOfLong(presented string) [sha256.Size]byte {
	var long [maxAPIKey]byte
	return sha256.Sum256(long[:copy(long[:], presented)])
}

// String tells how many keys there are, former values included.
func (k Keys) String() string { return fmt.Sprintf("[%d API keys]", len(k.keys)) }

// Format hides the keys from every verb of package fmt.
func (k Keys) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, k.String()) }

// MarshalText hides the keys from JSON and YAML.
func (k Keys) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// lapsed tells whether an end, if there is one, has come.
func lapsed(end, now time.Time) bool { return !end.IsZero() && !now.Before(end) }
