package httpapi

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"strings"
)

// chooseRequestID returns the client's X-Request-Id if it is safe in a log line and a header, and a new id otherwise. Only
// the characters of UUIDs, ULIDs and similar ids are allowed, which no terminal, log parser or shell interprets. An id that
// looks like a phone number or an API key is not used, because it would appear in the log.
func chooseRequestID(h http.Header) string {
	if values := h["X-Request-Id"]; len(values) == 1 && isPlainID(values[0]) {
		return values[0]
	}
	// The id must be unique but not secret. The generator is ChaCha8, seeded by the system.
	var random [16]byte
	binary.LittleEndian.PutUint64(random[:8], rand.Uint64()) //nolint:gosec // as above
	binary.LittleEndian.PutUint64(random[8:], rand.Uint64()) //nolint:gosec // as above
	return hex.EncodeToString(random[:])
}

// isPlainID reports whether s can be used as a request id.
func isPlainID(s string) bool {
	if s == "" || len(s) > maxRequestIDBytes {
		return false
	}
	letters, digits := 0, 0
	for i := range len(s) {
		switch c := s[i]; {
		case isDigit(c):
			digits++
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
			letters++
		case c != '-' && c != '_' && c != '.':
			return false
		}
	}
	return (letters > 0 || digits < leastPhoneDigits) && !strings.HasPrefix(s, "pp_")
}

// leastPhoneDigits is how many digits the shortest international phone numbers have.
const leastPhoneDigits = 7
