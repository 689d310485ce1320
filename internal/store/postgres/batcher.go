package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// mostInBatch bounds what goes together: more would make the first wait for the last.
	mostInBatch = 256
	// mostWaiting bounds what waits for a database that is slower than what comes in. More is refused at once.
	mostWaiting = 8192
	// flightTime bounds one batch with its repetitions. Callers mostly give up before.
	flightTime = 4 * time.Second
)

// call is one operation of a batch.
type call[I, O any] struct {
	ctx  context.Context //nolint:containedctx // a call is the caller's for as long as it waits
	in   I
	out  O
	err  error
	done chan struct{}
}

// batcher sends what waits while other batches are on their way as the next batch. A call that comes alone is sent at
// once, so nothing is ever delayed to make a batch larger; the busier the database, the larger they get by themselves.
type batcher[I, O any] struct {
	// run does all calls and sets out or err of each.
	run func(ctx context.Context, calls []*call[I, O])
	// fits begins a batch: it returns what tells of each call whether it may go together with those before; nil if all may.
	fits func() func(next *call[I, O]) bool
	// flights is how many batches may be on their way at once.
	flights int
	// sizes is told how many went together.
	sizes prometheus.Observer
	// crew runs flights; see Store.Start.
	crew *crew

	mu      sync.Mutex
	waiting []*call[I, O]
	flying  int
}

// do waits for the outcome of one operation, or for the end of ctx, after which the outcome is unknown.
func (b *batcher[I, O]) do(ctx context.Context, in I) (O, error) {
	var none O
	if err := ctx.Err(); err != nil {
		return none, err
	}
	c := &call[I, O]{ctx: ctx, in: in, done: make(chan struct{})}
	if refused := b.enqueue(c); refused != nil {
		return none, unavailable(refused)
	}
	select {
	case <-c.done:
		return c.out, c.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

func (b *batcher[I, O]) enqueue(c *call[I, O]) *DatabaseError {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) >= mostWaiting {
		return &DatabaseError{Message: "too many operations wait for the database"}
	}
	if b.flying < b.flights {
		if !b.crew.Go(b.fly) {
			return &DatabaseError{Message: closing}
		}
		b.flying++
	}
	b.waiting = append(b.waiting, c)
	return nil
}

// fly runs batches until nothing waits.
func (b *batcher[I, O]) fly() {
	for {
		batch := b.take()
		if len(batch) == 0 {
			return
		}
		b.sizes.Observe(float64(len(batch)))
		ctx, cancel := context.WithTimeout(context.Background(), flightTime)
		b.run(ctx, batch)
		cancel()
		for _, c := range batch {
			close(c.done)
		}
	}
}

// take returns the next batch, without those whose callers have gone; nothing ends the flight.
func (b *batcher[I, O]) take() []*call[I, O] {
	b.mu.Lock()
	defer b.mu.Unlock()
	var batch, rest []*call[I, O]
	fits := func(*call[I, O]) bool { return true }
	if b.fits != nil {
		fits = b.fits()
	}
	for i, c := range b.waiting {
		switch {
		case len(batch) == mostInBatch:
			rest = append(rest, b.waiting[i:]...)
		case c.ctx.Err() != nil:
			continue
		case fits(c):
			batch = append(batch, c)
			continue
		default:
			rest = append(rest, c)
			continue
		}
		break
	}
	b.waiting = rest
	if len(batch) == 0 {
		b.flying--
	}
	return batch
}

// apart runs a batch, and where one of its calls has a content that the database refuses, its halves, until that one is
// alone with its error.
func apart[I, O any](ctx context.Context, calls []*call[I, O], run func(context.Context, []*call[I, O]) error) {
	err := run(ctx, calls)
	switch {
	case err == nil:
	case aboutContent(err) && len(calls) > 1:
		half := len(calls) / 2
		apart(ctx, calls[:half], run)
		apart(ctx, calls[half:], run)
	default:
		for _, c := range calls {
			c.err = outcome(err)
		}
	}
}

// outcome is what callers are told of a batch that failed. The end of the batch's own time is the database's fault.
func outcome(err error) error {
	if errors.Is(err, context.Canceled) {
		err = &DatabaseError{Message: closing}
	}
	return unavailable(err)
}
