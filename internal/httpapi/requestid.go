package httpapi

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
)

// requestID returns the client's X-Request-Id, if it can stand in a log line and a header as it is, or a new one. The
// characters are those of UUIDs, ULIDs and the like: nothing that a terminal, a log parser or a shell would act on.
func requestID(h http.Header) string {
	if values := h["X-Request-Id"]; len(values) == 1 && plainID(values[0]) {
		return values[0]
	}
	// Unique is enough: the id opens nothing. The generator is ChaCha8, seeded by the system.
	var random [16]byte
	binary.LittleEndian.PutUint64(random[:8], rand.Uint64()) //nolint:gosec // as above
	binary.LittleEndian.PutUint64(random[8:], rand.Uint64()) //nolint:gosec // as above
	return hex.EncodeToString(random[:])
}

func plainID(s string) bool {
	if s == "" || len(s) > maxRequestIDBytes {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}
