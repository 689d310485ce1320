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
	"github.com/phoneproof/phoneproof/test/chaos/platform"
	"github.com/phoneproof/phoneproof/test/system"
)

// Options say what to play. All but Requests are required.
type Options struct {
	Seed    uint64
	Workers int
	// Rate is how many verifications are begun a second at most; zero is as many as the workers can. What takes all that the
	// machine has makes it slower than the product's leases allow, and that is no fault that a judge could know of.
	Rate float64
	// Requests is how many verifications are begun; zero is as many as there is time for.
	Requests int
	Project  *system.Project
	// Replicas are the addresses of the API, some of them dead.
	Replicas func() []string
	// Key is the API key that clients use from now on.
	Key      func() string
	Platform *platform.Platform
	// Revoke revokes an API key that was valid so far, and returns it.
	Revoke func() (string, error)
	// Clients, Statuses, Inbound and Trespasses are the ledgers.
	Clients, Statuses, Inbound, Trespasses *ledger.Writer
	// Closing says that the end is near: what begins now is to end soon.
	Closing func() bool
}

// Load is a world that runs.
type Load struct {
	Options

	http    *http.Client
	meta    *meta
	postman *postman
	recent  recent
	refused texts

	pace    *rate.Limiter
	next    atomic.Int64
	updates atomic.Int64
	// counts are for the reader of the report.
	begun, proven, retries, unasked, unauthorized atomic.Int64

	mu  sync.Mutex
	err error
}

// New returns a world that does nothing yet.
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
	l.postman = newPostman()
	return l
}

const (
	// callTimeout is how long a client waits for an answer.
	callTimeout = 8 * time.Second
	// maxPause is the longest that anybody waits before he tries again.
	maxPause = 250 * time.Millisecond
	pollers  = 2
)

// Run plays until all requests are begun and proven, or stop is closed; then what is on its way ends in order. It ends at
// once with ctx.
func (l *Load) Run(ctx context.Context, stop <-chan struct{}) error {
	var clients, others sync.WaitGroup
	ending, end := context.WithCancel(ctx)
	defer end()
	others.Go(func() { l.meta.run(ending) })
	others.Go(func() { l.postman.run(ending) })
	others.Go(func() { l.trespass(ending) })
	for n := range pollers {
		others.Go(func() { l.poll(ending, uint64(n)) })
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
		clients.Go(func() { l.work(ctx, beginning) })
	}
	clients.Wait()
	l.postman.wait(ctx)
	end()
	others.Wait()
	l.http.CloseIdleConnections()
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(ctx.Err(), l.err)
}

// work plays verifications, one after the other, until none is to begin any more.
func (l *Load) work(ctx, beginning context.Context) {
	for l.pace.Wait(beginning) == nil {
		n := l.next.Add(1)
		if l.Requests > 0 && n > int64(l.Requests) {
			return
		}
		l.live(ctx, n)
	}
}

// Begun is how many verifications were acknowledged so far.
func (l *Load) Begun() int { return int(l.begun.Load()) }

// Refusals are the bodies of all answers that were no success, each once.
func (l *Load) Refusals() []string { return l.refused.list() }

// String tells what was done.
func (l *Load) String() string {
	return fmt.Sprintf("%d begun, %d proven, %d tries repeated, %d users asked nothing, %d valid keys refused",
		l.begun.Load(), l.proven.Load(), l.retries.Load(), l.unasked.Load(), l.unauthorized.Load())
}

// Unauthorized is how often a key was refused that was valid.
func (l *Load) Unauthorized() int { return int(l.unauthorized.Load()) }

// write notes what a ledger did not take: then the run proves nothing.
func (l *Load) write(err error) {
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.err = errors.Join(l.err, err)
	}
}

// insist repeats a step at replicas by chance until it succeeds.
func (l *Load) insist(ctx context.Context, step func(replica string) bool) bool {
	for ctx.Err() == nil {
		if replica, ok := l.any(); ok && step(replica) {
			return true
		}
		l.retries.Add(1)
		pause(ctx, rand.N(maxPause))
	}
	return false
}

func (l *Load) any() (string, bool) {
	replicas := l.Replicas()
	if len(replicas) == 0 {
		return "", false
	}
	return replicas[rand.N(len(replicas))], true
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
