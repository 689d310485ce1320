package httpapi

import (
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/tokenbucket"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// readRate returns the rate of reads of a key at this server, and whether it is limited: each read of a pending request and each
// retry of init is a call of the store. It grows with the key's limit on inits, perKey, so there is nothing to configure.
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

// limitStatus returns errStatusRate if the key reads too often.
func (x *exchange) limitStatus(key string) error {
	rate, limited := readRate(x.settings.Limits.PerKey)
	if !limited || x.api.statusReads.Take(key, rate, x.api.clock.Now()) {
		return nil
	}
	return errStatusRate
}

// limitLists returns errListRate if the key lists too often; what a list takes beyond the reads that are left is owed. Lists have a
// limit of their own, so that they never keep a client with the same key from asking for a status.
func (x *exchange) limitLists(key string, reads int) error {
	rate, now := listRate(x.settings.Limits.PerKey), x.api.clock.Now()
	if !x.api.listReads.Take(key, rate, now) {
		return errListRate
	}
	for range reads - 1 {
		x.api.listReads.Charge(key, rate, now)
	}
	return nil
}

// limitRedeliveries returns errRedeliveryRate if the key has too many events sent again.
func (x *exchange) limitRedeliveries(key string) error {
	rate := tokenbucket.Rate{PerSecond: redeliveriesPerSecond, Burst: redeliveriesPerSecond * statusBurstTime.Seconds()}
	if x.api.redeliveries.Take(key, rate, x.api.clock.Now()) {
		return nil
	}
	return errRedeliveryRate
}

// limitRetries returns errRetryRate if the key retries too often; only inits with an Idempotency-Key are retries. Inits that
// start a verification do not count, so that no user whom the other limits admit is kept from signing up.
func (x *exchange) limitRetries(key string) error {
	rate, limited := readRate(x.settings.Limits.PerKey)
	if !limited || x.api.retries.Has(key, rate, x.api.clock.Now()) {
		return nil
	}
	return errRetryRate
}

// chargeRetry counts an init with an Idempotency-Key that started no verification, even if no retry was left.
func (x *exchange) chargeRetry(key string) {
	if rate, limited := readRate(x.settings.Limits.PerKey); limited {
		x.api.retries.Charge(key, rate, x.api.clock.Now())
	}
}

// limitDeliveries returns an error if a key delivers too often, or to one number, whatever the answers are: while the limits of the number
// refuse other codes, an answer shows that a code is the one that was delivered. The first bound keeps the numbers of the second in memory.
func (x *exchange) limitDeliveries(in *verification.Initiation) error {
	now := x.api.clock.Now()
	if !x.api.deliveries.Take(in.KeyName, keyDeliveryRate, now) {
		return errKeyDeliveryRate
	}
	number := in.KeyName + "\x00" + phone.Canonical(in.Phone).E164()
	if in.Test || x.api.deliveries.Take(number, deliveryRate, now) {
		return nil
	}
	return errDeliveryRate
}
