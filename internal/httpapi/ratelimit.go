package httpapi

import (
	"strconv"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// These are the structured fields of draft-ietf-httpapi-ratelimit-headers-11: RateLimit-Policy lists the limits
// ("key";q=600;w=60 is 600 per 60 seconds), and RateLimit shows what is left of one of them ("key";r=599;t=12 is 599 left,
// more in 12 seconds). Both count inits and deliveries alone, and their answers have them, if one was admitted or was refused by a limit.

// reportRemaining sets what is left of the key's limit. A retry of a stored request does not count and does not know it.
func (x *exchange) reportRemaining(created verification.Created) {
	limits := x.settings.LimitsOf(x.testKey)
	if !limits.PerKey.Limited() {
		return
	}
	x.setRatePolicy(limits)
	if !created.Existing {
		x.setRateRemaining(verification.LimitPerKey, int64(created.Key.Remaining), wholeSeconds(created.Key.Reset))
	}
}

// reportRateLimited sets and counts the limit that refused the request.
func (x *exchange) reportRateLimited(e *verification.Error) {
	if e.Limit == "" { // also errStatusRate, which is no limit of these
		return
	}
	if !x.testKey {
		x.api.metrics.limited.WithLabelValues(e.Limit).Inc()
	}
	x.setRatePolicy(x.settings.LimitsOf(x.testKey))
	x.setRateRemaining(e.Limit, 0, wholeSeconds(e.RetryAfter))
}

func (x *exchange) setRatePolicy(limits verification.Limits) {
	policy := make([]byte, 0, 64)
	policy = appendPolicy(policy, verification.LimitPerKey, limits.PerKey)
	policy = appendPolicy(policy, verification.LimitPerPhoneNumber, limits.PerPhoneNumber)
	policy = appendPolicy(policy, verification.LimitPerPrefix, limits.PerPrefix.Rate)
	policy = appendPolicy(policy, verification.LimitPerSubject, limits.PerSubject)
	if len(policy) > 0 { // A cool-down, which is no rate, may refuse where no rate does.
		x.w.Header()["Ratelimit-Policy"] = []string{string(policy)}
	}
}

func appendPolicy(b []byte, name string, rate verification.Rate) []byte {
	if !rate.Limited() {
		return b
	}
	if len(b) > 0 {
		b = append(b, ", "...)
	}
	b = append(b, '"')
	b = append(b, name...)
	b = append(b, `";q=`...)
	b = strconv.AppendInt(b, int64(rate.Requests), 10)
	b = append(b, ";w="...)
	return strconv.AppendInt(b, wholeSeconds(rate.Period), 10)
}

func (x *exchange) setRateRemaining(name string, remaining, seconds int64) {
	left := make([]byte, 0, 32)
	left = append(left, '"')
	left = append(left, name...)
	left = append(left, `";r=`...)
	left = strconv.AppendInt(left, max(remaining, 0), 10)
	left = append(left, ";t="...)
	left = strconv.AppendInt(left, seconds, 10)
	x.w.Header()["Ratelimit"] = []string{string(left)}
}
