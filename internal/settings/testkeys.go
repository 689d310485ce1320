package settings

import (
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// The quota of test keys. It is fixed, because it takes nothing from the limits of the other keys.
const (
	testRequests = 60
	testPeriod   = time.Minute
	// testStored is how many requests of test keys are stored at once, beside spec.request.maxStored. Those with an Idempotency-Key rest for
	// verification.CodeRest before they make room, so there is room for as many as may begin in that time, and for some that are open.
	testStored = 400
)

// LimitsOf returns the limits for the requests of test keys, or of all others.
func (s *Settings) LimitsOf(testKey bool) verification.Limits {
	if !testKey {
		return s.Limits
	}
	return verification.Limits{
		PerKey: verification.Rate{Requests: testRequests, Period: testPeriod}, MaxStored: testStored,
	}
}
