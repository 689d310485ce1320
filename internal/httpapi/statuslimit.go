package httpapi

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// statusLimit bounds how often each API key may read at this server: a read of a pending request is a call of the store, and
// init limits no retries. It grows with what the key may start, so there is nothing to configure.
type statusLimit struct {
	mu    sync.Mutex
	byKey map[string]*rate.Limiter
}

// statusRate returns how many reads a second a key has that may start verifications at that rate.
func statusRate(perKey verification.Rate) rate.Limit {
	if !perKey.Limited() {
		return rate.Inf
	}
	started := float64(perKey.Requests) / perKey.Period.Seconds()
	return rate.Limit(max(minStatusRate, statusPerVerification*started))
}

// allow takes a read of the key at now, if one is left.
func (l *statusLimit) allow(key string, perKey verification.Rate, now time.Time) bool {
	limit := statusRate(perKey)
	if limit == rate.Inf {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter := l.byKey[key]
	if limiter == nil {
		l.forgetIdle(now)
		limiter = rate.NewLimiter(limit, statusBurst(limit))
		l.byKey[key] = limiter
	}
	if limiter.Limit() != limit { // the settings changed
		limiter.SetLimitAt(now, limit)
		limiter.SetBurstAt(now, statusBurst(limit))
	}
	return limiter.AllowN(now, 1)
}

// statusBurst returns how many reads may come at once.
func statusBurst(limit rate.Limit) int { return int(float64(limit) * statusBurstTime.Seconds()) }

// forgetIdle forgets the keys that have not read for so long that it makes no difference: keys come and go, and their
// names must not stay.
func (l *statusLimit) forgetIdle(now time.Time) {
	if l.byKey == nil {
		l.byKey = make(map[string]*rate.Limiter)
	}
	for name, limiter := range l.byKey {
		if limiter.TokensAt(now) >= float64(limiter.Burst()) {
			delete(l.byKey, name)
		}
	}
}

// limitStatus refuses a read of a key that reads too often.
func (x *exchange) limitStatus(key string) error {
	if x.api.statusLimit.allow(key, x.settings.Limits.PerKey, x.api.clock.Now()) {
		return nil
	}
	return errStatusRate
}
