package httpapi

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"strings"
)

// requestID returns the client's X-Request-Id, if it can stand in a log line and a header as it is, or a new one. The
// characters are those of UUIDs, ULIDs and the like: nothing that a terminal, a log parser or a shell would act on. What
// looks like a phone number or one of our API keys is not taken over: it would stand in the log.
func chooseRequestID(h http.Header) string {
	if values := h["X-Request-Id"]; len(values) == 1 && isPlainID(values[0]) {
		return values[0]
	}
	// Unique is enough: the id opens nothing. The generator is ChaCha8, seeded by the system.
	var random [16]byte
	binary.LittleEndian.PutUint64(random[:8], rand.Uint64()) //nolint:gosec // as above
	binary.LittleEndian.PutUint64(random[8:], rand.Uint64()) //nolint:gosec // as above
	return hex.EncodeToString(random[:])
}

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
