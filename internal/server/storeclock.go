package server

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// clockTolerance is the largest clock difference that is ignored. It is far less than what separates
// the end of a request's time from its expiry, and far more than what clocks that are kept right differ by.
const clockTolerance = time.Second

// storeClock is the time that all replicas of a project use, whatever the clocks of their machines show. A machine that is an hour
// ahead would otherwise expire what others have just begun, and one that is behind would leave due events lying. Its timers are the
// machine's: how long something takes is the same everywhere.
//
// The invariant: after an answer of the store, Now is within clockTolerance of the store's time, as far as an answer that took
// a while can tell.
type storeClock struct {
	clock.Clock

	log      logr.Logger
	offset   atomic.Int64
	loggedAt atomic.Int64 // when the offset was logged last
}

// newStoreClock returns a clock that is the machine's until the store's time is known.
func newStoreClock(machine clock.Clock, log logr.Logger) *storeClock {
	return &storeClock{Clock: machine, log: log}
}

// Now returns the store's time.
func (c *storeClock) Now() time.Time { return c.Clock.Now().Add(c.Offset()) }

// Since returns how much of the store's time has passed since t.
func (c *storeClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Offset is what has to be added to the machine's time; zero while that is right.
func (c *storeClock) Offset() time.Duration { return time.Duration(c.offset.Load()) }

// beginMeasurement notes that the store is asked, and returns what takes the time that its answer tells, which is the store's own up to
// resolution later.
func (c *storeClock) beginMeasurement() (told func(at time.Time, resolution time.Duration)) {
	asked := c.Clock.Now()
	return func(at time.Time, resolution time.Duration) {
		// The store looked at its clock at some moment between the question and the answer.
		c.updateOffset(at.Sub(c.Clock.Now()), at.Add(resolution).Sub(asked))
	}
}

// updateOffset takes the bounds that an answer sets to the offset. One that took long says little, and changes nothing.
func (c *storeClock) updateOffset(least, most time.Duration) {
	fits := func(offset time.Duration) bool {
		return least-clockTolerance <= offset && offset <= most+clockTolerance
	}
	before := c.Offset()
	switch {
	case least > most: // the machine's clock was set back meanwhile: the next answer will tell
		return
	case fits(0):
		c.offset.Store(0)
	case fits(before):
		return
	default:
		c.offset.Store(int64((least + most) / 2))
	}
	if after := c.Offset(); after != before {
		c.logOffset(after)
	}
}

// logOffset logs a changed offset, at most once a minute: two servers behind one address may differ for ever.
func (c *storeClock) logOffset(offset time.Duration) {
	now := c.Clock.Now().UnixNano()
	last := c.loggedAt.Load()
	if since := time.Duration(now - last); since.Abs() < time.Minute || !c.loggedAt.CompareAndSwap(last, now) {
		return
	}
	c.log.Info("the machine's clock differs from the store's, which counts", "offset", offset.Round(time.Second).String())
}

// wrapTransport returns a transport that takes the store's time from the Date of every answer.
func (c *storeClock) wrapTransport(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		told := c.beginMeasurement()
		response, err := next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
			told(date, time.Second)
		}
		return response, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip makes the call.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
