package httpapi

import (
	"sync"
	"time"

	"github.com/phoneproof/phoneproof/internal/tokenbucket"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// readLimit limits how often each API key may read at this server, because each read of a pending request and each retry of
// init is a call of the store. It grows with the key's limit on inits, so there is nothing to configure.
type readLimit struct {
	mu    sync.Mutex
	byKey map[string]*tokenbucket.Bucket
}

// readRate returns the rate of reads of a key that may start verifications at the rate perKey, and whether it is limited.
// A key may start all verifications at once, however long its period is, and then all their clients read in the same minute.
func readRate(perKey verification.Rate) (rate tokenbucket.Rate, limited bool) {
	if !perKey.Limited() {
		return tokenbucket.Rate{}, false
	}
	reads := float64(statusPerVerification * perKey.Requests)
	perSecond := max(minStatusRate, reads/min(perKey.Period, statusTime).Seconds())
	return tokenbucket.Rate{PerSecond: perSecond, Burst: perSecond * statusBurstTime.Seconds()}, true
}

// listRate is readRate for lists, which are limited in any case: one can be as expensive as the reads of hundreds of requests.
func listRate(perKey verification.Rate) tokenbucket.Rate {
	rate, limited := readRate(perKey)
	if !limited {
		return tokenbucket.Rate{PerSecond: minStatusRate, Burst: minStatusRate * statusBurstTime.Seconds()}
	}
	return rate
}

// takeReads uses up some reads of the key, and reports whether one was left at now. What it takes beyond that is owed.
func (l *readLimit) takeReads(key string, rate tokenbucket.Rate, reads int, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	bucket := l.bucketOf(key, rate, now)
	if !bucket.Take(rate, now) {
		return false
	}
	for range reads - 1 {
		bucket.Charge(rate, now)
	}
	return true
}

// takeRead uses up a read of the key, and reports whether one was left at now.
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

// chargeRead counts a read that was made, even if none was left.
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

// forgetIdle removes the keys whose buckets are full again, so that the names of removed keys do not use memory.
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

// limitStatus returns errStatusRate if the key reads too often.
func (x *exchange) limitStatus(key string) error {
	if x.api.statusReads.takeRead(key, x.settings.Limits.PerKey, x.api.clock.Now()) {
		return nil
	}
	return errStatusRate
}

// limitLists returns errListRate if the key lists too often. Lists have a limit of their own, so that they never keep a client with the
// same key from asking for a status.
func (x *exchange) limitLists(key string, reads int) error {
	if x.api.listReads.takeReads(key, listRate(x.settings.Limits.PerKey), reads, x.api.clock.Now()) {
		return nil
	}
	return errListRate
}

// limitRedeliveries returns errRedeliveryRate if the key has too many events sent again.
func (x *exchange) limitRedeliveries(key string) error {
	rate := tokenbucket.Rate{PerSecond: redeliveriesPerSecond, Burst: redeliveriesPerSecond * statusBurstTime.Seconds()}
	if x.api.redeliveries.takeReads(key, rate, 1, x.api.clock.Now()) {
		return nil
	}
	return errRedeliveryRate
}

// limitRetries returns errRetryRate if the key retries too often; only inits with an Idempotency-Key are retries. Inits that
// start a verification do not count, so that no user whom the other limits admit is kept from signing up.
func (x *exchange) limitRetries(key string) error {
	if x.api.retries.hasRead(key, x.settings.Limits.PerKey, x.api.clock.Now()) {
		return nil
	}
	return errRetryRate
}

// chargeRetry counts an init with an Idempotency-Key that started no verification.
func (x *exchange) chargeRetry(key string) {
	x.api.retries.chargeRead(key, x.settings.Limits.PerKey, x.api.clock.Now())
}
