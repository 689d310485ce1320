package httpapi

import (
	"sync"
	"time"

	"github.com/phoneproof/phoneproof/internal/tokenbucket"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// readLimit bounds how often each API key may read at this server: a read of a pending request is a call of the store, and so
// is a retry of init. It grows with what the key may start, so there is nothing to configure.
type readLimit struct {
	mu    sync.Mutex
	byKey map[string]*tokenbucket.Bucket
}

// readRate returns how many reads a second a key has that may start verifications at that rate, and whether it is limited
// at all. It may start all of them at once, however long the period is, and then all their clients ask in the same minute.
func readRate(perKey verification.Rate) (rate tokenbucket.Rate, limited bool) {
	if !perKey.Limited() {
		return tokenbucket.Rate{}, false
	}
	reads := float64(statusPerVerification * perKey.Requests)
	perSecond := max(minStatusRate, reads/min(perKey.Period, statusTime).Seconds())
	return tokenbucket.Rate{PerSecond: perSecond, Burst: perSecond * statusBurstTime.Seconds()}, true
}

// takeRead takes a read of the key at now, and reports whether one was left.
func (l *readLimit) takeRead(key string, perKey verification.Rate, now time.Time) bool {
	rate, limited := readRate(perKey)
	if !limited {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bucketOf(key, rate, now).Take(rate, now)
}

// hasRead reports whether the key has a read left at now.
func (l *readLimit) hasRead(key string, perKey verification.Rate, now time.Time) bool {
	rate, limited := readRate(perKey)
	if !limited {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bucketOf(key, rate, now).Tokens(rate, now) >= 1
}

// chargeRead takes a read that was made, if need be from those to come.
func (l *readLimit) chargeRead(key string, perKey verification.Rate, now time.Time) {
	rate, limited := readRate(perKey)
	if !limited {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bucketOf(key, rate, now).Charge(rate, now)
}

// bucketOf returns the bucket of a key.
func (l *readLimit) bucketOf(key string, rate tokenbucket.Rate, now time.Time) *tokenbucket.Bucket {
	bucket := l.byKey[key]
	if bucket == nil {
		l.forgetIdle(rate, now)
		bucket = &tokenbucket.Bucket{}
		l.byKey[key] = bucket
	}
	return bucket
}

// forgetIdle forgets the keys that have not read for so long that it makes no difference: keys come and go, and their
// names must not stay.
func (l *readLimit) forgetIdle(rate tokenbucket.Rate, now time.Time) {
	if l.byKey == nil {
		l.byKey = make(map[string]*tokenbucket.Bucket)
	}
	for name, bucket := range l.byKey {
		if bucket.Tokens(rate, now) >= rate.Burst {
			delete(l.byKey, name)
		}
	}
}

// limitStatus refuses a read of a key that reads too often.
func (x *exchange) limitStatus(key string) error {
	if x.api.statusReads.takeRead(key, x.settings.Limits.PerKey, x.api.clock.Now()) {
		return nil
	}
	return errStatusRate
}

// limitRetries refuses an init with an Idempotency-Key where the API key retries too often. What starts a verification is not
// counted, so reads of the status and retries keep no user from signing up that the limits on starting admit.
func (x *exchange) limitRetries(key string) error {
	if x.api.retries.hasRead(key, x.settings.Limits.PerKey, x.api.clock.Now()) {
		return nil
	}
	return errRetryRate
}

// chargeRetry counts an init with an Idempotency-Key that started nothing.
func (x *exchange) chargeRetry(key string) {
	x.api.retries.chargeRead(key, x.settings.Limits.PerKey, x.api.clock.Now())
}
