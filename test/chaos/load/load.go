package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/phoneproof/phoneproof/test/chaos/ledger"
	"github.com/phoneproof/phoneproof/test/system"
)

// Options configure a Load. All but Rate are required.
type Options struct {
	Seed    uint64
	Workers int
	// Rate is the most verifications that begin per second; zero is as many as the workers can. A load that takes the
	// whole machine makes it slower than the product's leases allow, which the judge cannot know.
	Rate    float64
	Project *system.Project
	// Replicas returns the addresses of the API, some of them dead.
	Replicas func() []string
	// Key returns the API key that clients use from now on.
	Key      func() string
	Platform *Platform
	// Revoke revokes an API key that was valid so far, and returns it.
	Revoke func() (string, error)
	// Clients, Statuses, Inbound, Confirms and KeyTries are the ledgers.
	Clients, Statuses, Inbound, Confirms, KeyTries *ledger.Writer
	// Closing reports whether the end is near: what begins now should end soon.
	Closing func() bool
	// Tries is the ledger of calls for codes.
	Tries *ledger.Writer
}

// Load is a running load.
type Load struct {
	Options

	http      *http.Client
	meta      *meta
	scheduler *scheduler
	recent    recentIDs
	codes     codes
	// revoked is an API key that every replica must refuse since that time.
	revoked      string
	refusedSince time.Time

	pace    *rate.Limiter
	next    atomic.Int64
	updates atomic.Int64
	// These counts are printed in the report.
	begun, proven, confirmed, retries, unasked, unauthorized atomic.Int64

	mu  sync.Mutex
	err error
}

// New returns a Load that has not started.
func New(o Options) *Load {
	l := &Load{Options: o}
	l.http = &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 2 * o.Workers, IdleConnTimeout: 10 * time.Second},
		Timeout:       callTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	l.pace = rate.NewLimiter(rate.Inf, 1)
	if o.Rate > 0 {
		l.pace.SetLimit(rate.Limit(o.Rate))
	}
	l.meta = newMeta(l)
	l.scheduler = newScheduler()
	return l
}

const (
	// callTimeout is how long a client waits for an answer.
	callTimeout = 8 * time.Second
	// firstPause is the longest pause before the first retry of a step, and maxPause that before any.
	firstPause = 250 * time.Millisecond
	maxPause   = 2 * time.Second
	pollers    = 2
)

// Run plays until stop is closed, and then completes what has begun. It ends at once with ctx.
func (l *Load) Run(ctx context.Context, stop <-chan struct{}) error {
	var clients, others sync.WaitGroup
	ending, end := context.WithCancel(ctx)
	defer end()
	others.Go(func() { l.meta.run(ending) })
	others.Go(func() { l.scheduler.run(ending) })
	others.Go(func() { l.useRevokedKey(ending) })
	for n := range pollers {
		others.Go(func() { l.pollStatuses(ending, uint64(n)) })
	}
	beginning, last := context.WithCancel(ctx)
	defer last()
	others.Go(func() {
		defer last()
		select {
		case <-stop:
		case <-ending.Done():
		}
	})
	for range l.Workers {
		clients.Go(func() { l.runWorker(ctx, beginning) })
	}
	clients.Wait()
	l.scheduler.waitAll(ctx)
	end()
	others.Wait()
	l.http.CloseIdleConnections()
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(ctx.Err(), l.err)
}

// runWorker plays verifications one after the other until no more may begin.
func (l *Load) runWorker(ctx, beginning context.Context) {
	for l.pace.Wait(beginning) == nil {
		l.runVerification(ctx, l.next.Add(1))
	}
}

// Begun returns how many verifications were acknowledged so far.
func (l *Load) Begun() int { return int(l.begun.Load()) }

// String returns the counts.
func (l *Load) String() string {
	return fmt.Sprintf("%d begun, %d proven, %d confirmed, %d tries repeated, %d users asked nothing, %d valid keys refused",
		l.begun.Load(), l.proven.Load(), l.confirmed.Load(), l.retries.Load(), l.unasked.Load(), l.unauthorized.Load())
}

// recordError records what a ledger could not write: then the run proves nothing.
func (l *Load) recordError(err error) {
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.err = errors.Join(l.err, err)
	}
}

// retryUntilDone repeats a step at random replicas until it succeeds, later each time: an outage ends sooner if the calls that it refuses
// leave the processors to the store that starts.
func (l *Load) retryUntilDone(ctx context.Context, step func(replica string) bool) bool {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, maxPause) {
		if replica, ok := l.pickReplica(); ok && step(replica) {
			return true
		}
		l.retries.Add(1)
		sleep(ctx, rand.N(pause))
	}
	return false
}

func (l *Load) pickReplica() (string, bool) {
	replicas := l.Replicas()
	if len(replicas) == 0 {
		return "", false
	}
	return replicas[rand.N(len(replicas))], true
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
