package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// ErrDone is returned by a call that has nothing left to send. It ends its client and is no failure.
var ErrDone = errors.New("nothing left to send")

// Turn is one call of a run.
type Turn struct {
	// N is the number of the call in its run, from zero.
	N int64
	// Due is when the request was scheduled; without a schedule, when it is sent.
	Due time.Time
}

// Call sends a request and waits for its answer.
type Call func(ctx context.Context, turn Turn) error

// Client creates one of several clients that run at the same time, such as one with its own connection. end may be nil.
type Client func(ctx context.Context) (call Call, end func() error, err error)

// Result holds the measurements of a run.
type Result struct {
	// Took is the time from the first request to the last answer.
	Took time.Duration
	// Latency has the time of each answer since its request was due or, without a schedule, since it was sent.
	Latency *Histogram
}

// PerSecond returns the number of answers per second.
func (r Result) PerSecond() float64 { return float64(r.Latency.Count()) / r.Took.Seconds() }

// Closed runs clients that send the next request as soon as the last one was answered, for length.
func Closed(ctx context.Context, clients int, length time.Duration, client Client) (Result, error) {
	var next atomic.Int64
	return run(ctx, clients, client, func(ctx context.Context, began time.Time, call Call, r *Result) error {
		for time.Since(began) < length && ctx.Err() == nil {
			sent := time.Now()
			if err := call(ctx, Turn{next.Add(1) - 1, sent}); err != nil {
				return err
			}
			r.Latency.Record(time.Since(sent))
		}
		return ctx.Err()
	})
}

// Open sends requests at a rate for length, whether or not they are answered, through at most that many clients. The
// gaps are random, and the same in each run with the same seed.
func Open(ctx context.Context, clients int, perSecond float64, length time.Duration, seed uint64, client Client) (Result, error) {
	offsets := newSchedule(perSecond, length, seed)
	due := make(chan time.Time, len(offsets)) // so that the schedule never waits for a client
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var dispatcher sync.WaitGroup
	defer dispatcher.Wait()
	var next atomic.Int64
	begin := sync.OnceFunc(func() { // once every client is connected
		dispatcher.Go(func() { dispatchDue(ctx, offsets, due) })
	})
	return run(ctx, clients, client, func(ctx context.Context, _ time.Time, call Call, r *Result) error {
		begin()
		for at := range due {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err := call(ctx, Turn{next.Add(1) - 1, at}); err != nil {
				return err
			}
			r.Latency.Record(time.Since(at))
		}
		return nil
	})
}

// newSchedule returns when requests are due, since the start. The gaps are distributed exponentially, as those of
// independent users are.
func newSchedule(perSecond float64, length time.Duration, seed uint64) []time.Duration {
	chance := rand.New(rand.NewPCG(seed, seed))
	var offsets []time.Duration
	for at := 0.0; ; {
		at += chance.ExpFloat64() / perSecond
		if at >= length.Seconds() {
			return offsets
		}
		offsets = append(offsets, time.Duration(at*float64(time.Second)))
	}
}

// dispatchDue sends each due time to the channel when it has come.
func dispatchDue(ctx context.Context, offsets []time.Duration, due chan<- time.Time) {
	defer close(due)
	// The runtime's timers may be a millisecond late, which is more than an answer takes. A thread that the kernel wakes
	// is not.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := time.Now()
	for _, offset := range offsets {
		at := began.Add(offset)
		for wait := time.Until(at); wait > 0; wait = time.Until(at) {
			if ctx.Err() != nil {
				return
			}
			pause := syscall.NsecToTimespec(min(wait, 100*time.Millisecond).Nanoseconds())
			_ = syscall.Nanosleep(&pause, nil) // a signal may end it early: then it sleeps again
		}
		due <- at
	}
}

// worker is what one connected client does. began is when all of them were connected: the start of the run.
type worker func(ctx context.Context, began time.Time, call Call, r *Result) error

// run connects all clients, runs them at the same time and joins their results. The first error ends them all.
func run(ctx context.Context, clients int, client Client, work worker) (Result, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	calls := make([]Call, clients)
	for i := range calls {
		call, end, err := client(ctx)
		if err != nil {
			return Result{}, fmt.Errorf("connect a client: %w", err)
		}
		if end != nil {
			defer func() { _ = end() }() // no longer needed
		}
		calls[i] = call
	}
	parts := make([]Result, clients)
	var all sync.WaitGroup
	began := time.Now()
	for i, call := range calls {
		parts[i] = Result{Latency: &Histogram{}}
		all.Go(func() {
			if err := work(ctx, began, call, &parts[i]); err != nil && !errors.Is(err, ErrDone) {
				stop(err)
			}
		})
	}
	all.Wait()
	total := Result{Took: time.Since(began), Latency: &Histogram{}}
	for _, part := range parts {
		total.Latency.Add(part.Latency)
	}
	return total, context.Cause(ctx)
}
