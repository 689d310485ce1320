package postgres

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// attempt is the JSON form of a verification.PastAttempt in the column earlier_attempts.
type attempt struct {
	At         int64  `json:"at"` // microseconds
	Event      string `json:"event"`
	StatusCode int    `json:"code,omitempty"`
	Reason     string `json:"reason,omitempty"`
}

func encodeAttempts(attempts []verification.PastAttempt) string {
	if len(attempts) == 0 {
		return ""
	}
	stored := make([]attempt, len(attempts))
	for i, a := range attempts {
		stored[i] = attempt{a.At.UnixMicro(), string(a.Event), a.StatusCode, a.Reason}
	}
	return encodeJSON(stored)
}

func decodeAttempts(text string) ([]verification.PastAttempt, error) {
	if text == "" {
		return nil, nil
	}
	var stored []attempt
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	attempts := make([]verification.PastAttempt, len(stored))
	for i, a := range stored {
		attempts[i] = verification.PastAttempt{
			At: time.UnixMicro(a.At).UTC(), Event: verification.EventKind(a.Event), StatusCode: a.StatusCode, Reason: a.Reason,
		}
	}
	return attempts, nil
}
