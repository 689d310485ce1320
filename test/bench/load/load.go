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

// ErrDone is what a call returns that has nothing left to send. It ends its client and is no failure.
var ErrDone = errors.New("nothing left to send")

// Turn is one call of a run.
type Turn struct {
	// N counts the calls of a run from zero.
	N int64
	// Due is when the request was to be sent; where there is no schedule, now.
	Due time.Time
}

// Call sends a request and waits for its answer.
type Call func(ctx context.Context, turn Turn) error

// Client makes one of several clients that run at the same time, such as one with a connection of its own. close may be
// nil.
type Client func(ctx context.Context) (call Call, end func() error, err error)

// Result is what a run found.
type Result struct {
	// Took is the time from the first request to the last answer.
	Took time.Duration
	// Latency has the time of each answer: since its request was due, or since it was sent where none is.
	Latency *Histogram
	// Late has how long after it was due each request was sent, because the generator or every client was busy.
	Late *Histogram
}

// PerSecond is the rate of answers.
func (r Result) PerSecond() float64 { return float64(r.Latency.Count()) / r.Took.Seconds() }

// Closed runs clients that send as soon as they were answered, for a time.
func Closed(ctx context.Context, clients int, length time.Duration, client Client) (Result, error) {
	var next atomic.Int64
	began := time.Now()
	return run(ctx, clients, client, func(ctx context.Context, call Call, r *Result) error {
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

// Open sends at a rate, for a time, whether or not there were answers, through that many clients at most. The gaps are
// those of chance, and the same in each run with the same seed.
func Open(ctx context.Context, clients int, perSecond float64, length time.Duration, seed uint64, client Client) (Result, error) {
	offsets := schedule(perSecond, length, seed)
	due := make(chan time.Time, len(offsets)) // so that the schedule waits for nobody
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var dispatcher sync.WaitGroup
	defer dispatcher.Wait()
	var next atomic.Int64
	begin := sync.OnceFunc(func() { // when every client is there
		dispatcher.Go(func() { dispatch(ctx, offsets, due) })
	})
	return run(ctx, clients, client, func(ctx context.Context, call Call, r *Result) error {
		begin()
		for at := range due {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			r.Late.Record(time.Since(at))
			if err := call(ctx, Turn{next.Add(1) - 1, at}); err != nil {
				return err
			}
			r.Latency.Record(time.Since(at))
		}
		return nil
	})
}

// schedule is when requests are due, since the start: independent users come with gaps that are distributed
// exponentially.
func schedule(perSecond float64, length time.Duration, seed uint64) []time.Duration {
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

// dispatch hands each request out when it is due.
func dispatch(ctx context.Context, offsets []time.Duration, due chan<- time.Time) {
	defer close(due)
	// The runtime's own timers may be a millisecond late, which is more than an answer takes. A thread that the kernel
	// wakes is not.
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
			_ = syscall.Nanosleep(&pause, nil) // a signal may end it early: then it is asked again
		}
		due <- at
	}
}

// run has clients work at the same time, each with a connection that is there before any of them begins, and joins what
// they found. The first error ends them all.
func run(ctx context.Context, clients int, client Client, work func(context.Context, Call, *Result) error) (Result, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	calls := make([]Call, clients)
	for i := range calls {
		call, end, err := client(ctx)
		if err != nil {
			return Result{}, fmt.Errorf("connect a client: %w", err)
		}
		if end != nil {
			defer func() { _ = end() }() // a connection that is not needed any more
		}
		calls[i] = call
	}
	parts := make([]Result, clients)
	var all sync.WaitGroup
	began := time.Now()
	for i, call := range calls {
		parts[i] = Result{Latency: &Histogram{}, Late: &Histogram{}}
		all.Go(func() {
			if err := work(ctx, call, &parts[i]); err != nil && !errors.Is(err, ErrDone) {
				stop(err)
			}
		})
	}
	all.Wait()
	total := Result{Took: time.Since(began), Latency: &Histogram{}, Late: &Histogram{}}
	for _, part := range parts {
		total.Latency.Add(part.Latency)
		total.Late.Add(part.Late)
	}
	return total, context.Cause(ctx)
}
