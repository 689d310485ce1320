package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// maxBatchSize bounds the operations of a batch: in a larger one the first would wait too long for the last.
	maxBatchSize = 256
	// maxWaiting bounds the queue for a slow database. Further operations are rejected at once.
	maxWaiting = 8192
	// batchTimeout bounds one batch including its retries. Most callers give up earlier.
	batchTimeout = 4 * time.Second
)

// call is one operation of a batch.
type call[I, O any] struct {
	ctx  context.Context //nolint:containedctx // a call lives only as long as its caller waits
	in   I
	out  O
	err  error
	done chan struct{}
}

// batcher collects the calls that wait while other batches run, and sends them as the next batch. A lone call is sent at
// once: batches grow with the load, and nothing is delayed to make them larger.
type batcher[I, O any] struct {
	// run executes all calls and sets out or err of each.
	run func(ctx context.Context, calls []*call[I, O])
	// newFilter starts a batch: the filter reports whether the next call may join the calls before it. Nil admits all.
	newFilter func() func(next *call[I, O]) bool
	// maxConcurrent bounds the batches that run at the same time.
	maxConcurrent int
	// sizes observes the number of calls in each batch.
	sizes prometheus.Observer
	// workers runs the goroutines that execute batches; see Store.Start.
	workers *workerGroup

	mu      sync.Mutex
	waiting []*call[I, O]
	running int
}

// do runs one operation and returns its result. If ctx ends first, the outcome is unknown.
func (b *batcher[I, O]) do(ctx context.Context, in I) (O, error) {
	var none O
	if err := ctx.Err(); err != nil {
		return none, err
	}
	c := &call[I, O]{ctx: ctx, in: in, done: make(chan struct{})}
	if refused := b.enqueue(c); refused != nil {
		return none, unavailableError(refused)
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
	if len(b.waiting) >= maxWaiting {
		return &DatabaseError{Message: "too many operations wait for the database"}
	}
	if b.running < b.maxConcurrent {
		if !b.workers.Go(b.runBatches) {
			return &DatabaseError{Message: closingMessage}
		}
		b.running++
	}
	b.waiting = append(b.waiting, c)
	return nil
}

// runBatches runs batches until no call waits.
func (b *batcher[I, O]) runBatches() {
	for {
		batch := b.nextBatch()
		if len(batch) == 0 {
			return
		}
		b.sizes.Observe(float64(len(batch)))
		ctx, cancel := context.WithTimeout(context.Background(), batchTimeout)
		b.run(ctx, batch)
		cancel()
		for _, c := range batch {
			close(c.done)
		}
	}
}

// nextBatch returns the next batch without cancelled calls; an empty batch stops the worker.
func (b *batcher[I, O]) nextBatch() []*call[I, O] {
	b.mu.Lock()
	defer b.mu.Unlock()
	var batch, rest []*call[I, O]
	accepts := func(*call[I, O]) bool { return true }
	if b.newFilter != nil {
		accepts = b.newFilter()
	}
	for i, c := range b.waiting {
		switch {
		case len(batch) == maxBatchSize:
			rest = append(rest, b.waiting[i:]...)
		case c.ctx.Err() != nil:
			continue
		case accepts(c):
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
		b.running--
	}
	return batch
}

// runOrSplit runs a batch. If the database rejects the content of one call, it runs the halves separately, so that only that
// call fails.
func runOrSplit[I, O any](ctx context.Context, calls []*call[I, O], run func(context.Context, []*call[I, O]) error) {
	err := run(ctx, calls)
	switch {
	case err == nil:
	case isContentError(err) && len(calls) > 1:
		half := len(calls) / 2
		runOrSplit(ctx, calls[:half], run)
		runOrSplit(ctx, calls[half:], run)
	default:
		for _, c := range calls {
			c.err = batchError(err)
		}
	}
}

// batchError returns the error for the callers of a failed batch. An expired batchTimeout counts as a failure of the database.
func batchError(err error) error {
	if errors.Is(err, context.Canceled) {
		err = &DatabaseError{Message: closingMessage}
	}
	return unavailableError(err)
}
