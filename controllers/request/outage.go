package request

import (
	"time"

	"github.com/go-logr/logr"
)

// outageLogGap is how often a lasting failure of the store is logged. The store is called every second, and the log must stay
// readable.
const outageLogGap = time.Minute

// outage logs when a store fails and when it recovers: the first failure at once, the rest once per outageLogGap. The zero value
// is a store that works. It is for one goroutine only.
type outage struct {
	began, lastLogged time.Time
	failures          int
}

// logResult takes the result of a call of the store.
func (o *outage) logResult(log logr.Logger, now time.Time, doing string, err error) {
	switch {
	case err == nil && o.failures > 0:
		log.Info("the store answers again", "asked", doing, "after", now.Sub(o.began).Round(time.Second).String(), "failures", o.failures)
		*o = outage{}
	case err == nil:
	default:
		if o.failures == 0 {
			o.began = now
		}
		o.failures++
		if o.failures == 1 || now.Sub(o.lastLogged) >= outageLogGap {
			log.Error(err, doing+" failed, will retry", "failures", o.failures)
			o.lastLogged = now
		}
	}
}
