package controllers

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// The wait after a failure doubles from MinBackoff to MaxBackoff, less some jitter.
const (
	MinBackoff = time.Second
	MaxBackoff = 30 * time.Second
)

// Options configure Run.
type Options struct {
	// Reconcile returns when to reconcile again even if nothing changes; zero for never. A failure is logged and retried.
	Reconcile func(ctx context.Context) (again time.Duration, err error)
	// Failure is the message of the log line for a failure.
	Failure string
	// Changes wake the loop. Values that come within Quiet, which starts with the first, are one change.
	Changes []<-chan struct{}
	Quiet   time.Duration
	// MinGap is the least time between the beginnings of two reconciliations, if the second follows a change.
	MinGap time.Duration
	// Clock is the time source; the real one if nil.
	Clock clock.Clock
	Log   logr.Logger
}

// Run runs a controller that has one thing to reconcile: a callback, a status, an annotation. It reconciles at first and whenever that is
// due, until ctx ends. Controllers of many objects are run by controller-runtime.
func Run(ctx context.Context, o Options) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	changed, stop := mergeChanges(ctx, o.Changes)
	defer stop()
	o.sleep(ctx, o.Quiet)
	failures := 0
	for ctx.Err() == nil {
		select {
		case <-changed: // this reconciliation sees it
		default:
		}
		began := o.Clock.Now()
		again, err := o.Reconcile(ctx)
		if err == nil {
			failures = 0
			if o.waitForChange(ctx, changed, again) {
				o.sleep(ctx, max(o.Quiet, o.MinGap-o.Clock.Since(began)))
			}
		} else if ctx.Err() == nil {
			failures++
			wait := Backoff(failures, MinBackoff, MaxBackoff)
			o.Log.Error(err, o.Failure, "failures", failures, "retryAfter", wait.Round(time.Millisecond).String())
			o.sleep(ctx, wait)
		}
	}
	return nil
}

// Backoff returns how long to wait after that many failures in a row: least for the first, then twice as long for each, up to
// most; less some jitter.
func Backoff(failures int, least, most time.Duration) time.Duration {
	return Jitter(min(least<<min(max(failures-1, 0), 20), most))
}

// Jitter returns d less up to a fifth, so that the waits of many projects spread.
func Jitter(d time.Duration) time.Duration {
	return d - time.Duration(rand.Float64()*float64(d)/5) //nolint:gosec // no secret
}

// waitForChange returns true after a change, and false after the wait, if there is one, or when ctx ends.
func (o *Options) waitForChange(ctx context.Context, changed <-chan struct{}, wait time.Duration) bool {
	var due <-chan time.Time
	if wait > 0 {
		timer := o.Clock.NewTimer(wait)
		defer timer.Stop()
		due = timer.C()
	}
	select {
	case <-changed:
		return true
	case <-due:
		return false
	case <-ctx.Done():
		return false
	}
}

// sleep returns after d, or when ctx ends.
func (o *Options) sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := o.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	}
}

// mergeChanges returns a channel that gets a value, coalesced, for the values of all channels, until stop is called.
func mergeChanges(ctx context.Context, channels []<-chan struct{}) (changed <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	merged := make(chan struct{}, 1)
	var forwarders sync.WaitGroup
	for _, channel := range channels {
		if channel == nil {
			continue
		}
		forwarders.Go(func() {
			for {
				select {
				case <-channel:
				case <-ctx.Done():
					return
				}
				select {
				case merged <- struct{}{}:
				default: // a value that is still unread is enough
				}
			}
		})
	}
	return merged, func() {
		cancel()
		forwarders.Wait()
	}
}
