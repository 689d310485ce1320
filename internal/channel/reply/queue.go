package reply

import (
	"context"
	"sync"
	"time"
)

const (
	// Workers is how many replies are on their way at once.
	Workers = 4
	// Size bounds the replies that wait.
	Size = 512
	// timeout bounds the sending of each.
	timeout = 5 * time.Second
	// drain bounds how long replies are still sent after the end: the messages they answer are acknowledged.
	drain = 5 * time.Second
)

// Queue sends replies. Nothing is sent before Start.
type Queue struct {
	waiting chan func(context.Context)
}

// NewQueue returns an empty queue.
func NewQueue() *Queue { return &Queue{waiting: make(chan func(context.Context), Size)} }

// Add hands over what sends a reply; false if there is no room. send has to heed its context.
func (q *Queue) Add(send func(context.Context)) bool {
	select {
	case q.waiting <- send:
		return true
	default:
		return false
	}
}

// Len returns how many replies wait.
func (q *Queue) Len() int { return len(q.waiting) }

// Start sends replies until ctx ends, and those that wait then for a little longer.
func (q *Queue) Start(ctx context.Context) error {
	ending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var workers, end sync.WaitGroup
	end.Go(func() { endLater(ctx, ending, cancel) })
	for range Workers {
		workers.Go(func() { q.work(ctx, ending) })
	}
	workers.Wait()
	cancel()
	end.Wait()
	return nil
}

// endLater cancels ending when ctx ended a while ago.
func endLater(ctx, ending context.Context, cancel context.CancelFunc) {
	select {
	case <-ctx.Done():
	case <-ending.Done():
		return
	}
	timer := time.NewTimer(drain)
	defer timer.Stop()
	select {
	case <-timer.C:
		cancel()
	case <-ending.Done():
	}
}

// work sends until ctx ends, then what is left.
func (q *Queue) work(ctx, ending context.Context) {
	for {
		select {
		case send := <-q.waiting:
			bounded(ending, send)
		case <-ctx.Done():
			select {
			case send := <-q.waiting:
				bounded(ending, send)
			default:
				return
			}
		}
	}
}

func bounded(ctx context.Context, send func(context.Context)) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	send(ctx)
}
