package webhook

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter is more than any schedule allows; it keeps sums of times far from overflow.
const maxRetryAfter = 365 * 24 * time.Hour

// parseRetryAfter parses the header Retry-After: seconds, or an HTTP date, which it converts to a duration from now. It
// returns false for anything else (a sign, a fraction, words), which callers ignore.
func parseRetryAfter(value string, now time.Time) (time.Duration, bool) {
	value = strings.Trim(value, " \t")
	if value == "" || len(value) > 64 {
		return 0, false
	}
	if strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(maxRetryAfter/time.Second) {
			return maxRetryAfter, true
		}
		return time.Duration(seconds) * time.Second, true
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	return min(max(0, date.Sub(now)), maxRetryAfter), true
}
