package request

import (
	"time"

	"github.com/go-logr/logr"
)

// tellOutage is how often a store that goes on failing is logged: it is asked every second, and at night somebody reads
// the log for what else happens.
const tellOutage = time.Minute

// outage logs that a store fails and that it answers again: the first failure at once, the rest now and then. The zero
// value is a store that answers. It belongs to one goroutine.
type outage struct {
	began, told time.Time
	failures    int
}

// heard takes the result of asking the store.
func (o *outage) heard(log logr.Logger, now time.Time, doing string, err error) {
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
		if o.failures == 1 || now.Sub(o.told) >= tellOutage {
			log.Error(err, doing, "failures", o.failures)
			o.told = now
		}
	}
}
