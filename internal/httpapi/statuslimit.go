package httpapi

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// readLimit bounds how often each API key may read at this server: a read of a pending request is a call of the store, and so
// is a retry of init. It grows with what the key may start, so there is nothing to configure.
type readLimit struct {
	mu    sync.Mutex
	byKey map[string]*rate.Limiter
}

// statusRate returns how many reads a second a key has that may start verifications at that rate. It may start all of them
// at once, however long the period is, and then all their clients ask in the same minute.
func statusRate(perKey verification.Rate) rate.Limit {
	if !perKey.Limited() {
		return rate.Inf
	}
	reads := float64(statusPerVerification * perKey.Requests)
	return rate.Limit(max(minStatusRate, reads/min(perKey.Period, statusTime).Seconds()))
}

// allow takes a read of the key at now, if one is left.
func (l *readLimit) allow(key string, perKey verification.Rate, now time.Time) bool {
	limiter := l.limiterOf(key, perKey, now)
	return limiter == nil || limiter.AllowN(now, 1)
}

// leaves reports whether the key has a read left at now.
func (l *readLimit) leaves(key string, perKey verification.Rate, now time.Time) bool {
	limiter := l.limiterOf(key, perKey, now)
	return limiter == nil || limiter.TokensAt(now) >= 1
}

// charge takes a read that was made, if need be from those to come.
func (l *readLimit) charge(key string, perKey verification.Rate, now time.Time) {
	if limiter := l.limiterOf(key, perKey, now); limiter != nil {
		limiter.ReserveN(now, 1)
	}
}

// limiterOf returns the limiter of a key as the settings have it; nil if the key has no limit.
func (l *readLimit) limiterOf(key string, perKey verification.Rate, now time.Time) *rate.Limiter {
	limit := statusRate(perKey)
	if limit == rate.Inf {
		return nil
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
	return limiter
}

// statusBurst returns how many reads may come at once.
func statusBurst(limit rate.Limit) int { return int(float64(limit) * statusBurstTime.Seconds()) }

// forgetIdle forgets the keys that have not read for so long that it makes no difference: keys come and go, and their
// names must not stay.
func (l *readLimit) forgetIdle(now time.Time) {
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
	if x.api.statusReads.allow(key, x.settings.Limits.PerKey, x.api.clock.Now()) {
		return nil
	}
	return errStatusRate
}

// limitRetries refuses an init with an Idempotency-Key where the API key retries too often. What starts a verification is not
// counted, so reads of the status and retries keep no user from signing up that the limits on starting admit.
func (x *exchange) limitRetries(key string) error {
	if x.api.retries.leaves(key, x.settings.Limits.PerKey, x.api.clock.Now()) {
		return nil
	}
	return errRetryRate
}

// chargeRetry counts an init with an Idempotency-Key that started nothing.
func (x *exchange) chargeRetry(key string) {
	x.api.retries.charge(key, x.settings.Limits.PerKey, x.api.clock.Now())
}
