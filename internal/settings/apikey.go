package settings

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/big"
)

// The format of a generated API key: pp_, 256 random bits as 43 base-62 digits, and the CRC-32 (IEEE) of all that as 6
// more, like GitHub's tokens. The prefix lets scanners find a leaked key, the checksum detects a mistyped one without a
// lookup, and letters, digits and '_' survive every shell, URL and double click.
const (
	keyPrefix         = "pp_"
	keyRandomBytes    = 32
	keyRandomDigits   = 43 // 62^43 > 2^256
	keyChecksumDigits = 6  // 62^6 > 2^32
	keyChecked        = len(keyPrefix) + keyRandomDigits
	keyLength         = keyChecked + keyChecksumDigits
)

// The length limits of any API key. The longest fits into a header with room to spare.
const (
	minAPIKey = 32
	maxAPIKey = 4 << 10
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// Errors of CheckFormat.
var (
	ErrKeyLength     = fmt.Errorf("an API key that begins with %s has %d characters", keyPrefix, keyLength)
	ErrKeyCharacters = fmt.Errorf("an API key that begins with %s has only letters and digits after that", keyPrefix)
	ErrKeyChecksum   = errors.New("the checksum of the API key is wrong: a character is missing, added or mistyped")
)

// NewAPIKey returns a new API key with 256 bits read from random.
func NewAPIKey(random io.Reader) (string, error) {
	var bits [keyRandomBytes]byte
	if _, err := io.ReadFull(random, bits[:]); err != nil {
		return "", fmt.Errorf("read random bits for an API key: %w", err)
	}
	key := keyPrefix + encodeBase62(new(big.Int).SetBytes(bits[:]), keyRandomDigits)
	return key + encodeBase62(big.NewInt(int64(crc32.ChecksumIEEE([]byte(key)))), keyChecksumDigits), nil
}

// encodeBase62 returns n in base 62, padded with zeros to width.
func encodeBase62(n *big.Int, width int) string {
	out := make([]byte, width)
	base, digit := big.NewInt(int64(len(base62))), new(big.Int)
	n = new(big.Int).Set(n)
	for i := width - 1; i >= 0; i-- {
		n.DivMod(n, base, digit)
		out[i] = base62[digit.Int64()]
	}
	return string(out)
}

// CheckFormat returns what is wrong with the form of an API key that phoneproof keygen made, which is any that begins with
// pp_; nil for all others.
func CheckFormat(key []byte) error {
	if !bytes.HasPrefix(key, []byte(keyPrefix)) {
		return nil
	}
	if len(key) != keyLength {
		return ErrKeyLength
	}
	for i := len(keyPrefix); i < keyLength; i++ {
		if !isAlphanumeric(key[i]) {
			return ErrKeyCharacters
		}
	}
	sum := crc32.ChecksumIEEE(key[:keyChecked])
	for i := keyLength - 1; i >= keyChecked; i-- {
		if key[i] != base62[sum%uint32(len(base62))] {
			return ErrKeyChecksum
		}
		sum /= uint32(len(base62))
	}
	return nil
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}
