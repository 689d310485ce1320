package messenger

import (
	"context"
	"sync"
	"time"
)

const (
	// ReplyWorkers is how many replies are on their way at once.
	ReplyWorkers = 4
	// ReplyQueueSize bounds the replies that wait.
	ReplyQueueSize = 512
	// replyTimeout bounds the sending of each.
	replyTimeout = 5 * time.Second
	// replyDrain bounds how long replies are still sent after the end: the messages they answer are acknowledged.
	replyDrain = 5 * time.Second
)

// ReplyQueue sends replies. Nothing is sent before Start.
type ReplyQueue struct {
	waiting chan func(context.Context)
}

// NewReplyQueue returns an empty queue.
func NewReplyQueue() *ReplyQueue {
	return &ReplyQueue{waiting: make(chan func(context.Context), ReplyQueueSize)}
}

// Add hands over what sends a reply; false if there is no room. send has to heed its context.
func (q *ReplyQueue) Add(send func(context.Context)) bool {
	select {
	case q.waiting <- send:
		return true
	default:
		return false
	}
}

// Len returns how many replies wait.
func (q *ReplyQueue) Len() int { return len(q.waiting) }

// Start sends replies until ctx ends, and those that wait then for a little longer.
func (q *ReplyQueue) Start(ctx context.Context) error {
	ending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var workers, end sync.WaitGroup
	end.Go(func() { cancelAfterDrain(ctx, ending, cancel) })
	for range ReplyWorkers {
		workers.Go(func() { q.sendReplies(ctx, ending) })
	}
	workers.Wait()
	cancel()
	end.Wait()
	return nil
}

// cancelAfterDrain cancels ending when ctx ended a while ago.
func cancelAfterDrain(ctx, ending context.Context, cancel context.CancelFunc) {
	select {
	case <-ctx.Done():
	case <-ending.Done():
		return
	}
	timer := time.NewTimer(replyDrain)
	defer timer.Stop()
	select {
	case <-timer.C:
		cancel()
	case <-ending.Done():
	}
}

// sendReplies sends until ctx ends, then what is left.
func (q *ReplyQueue) sendReplies(ctx, ending context.Context) {
	for {
		select {
		case send := <-q.waiting:
			sendWithTimeout(ending, send)
		case <-ctx.Done():
			select {
			case send := <-q.waiting:
				sendWithTimeout(ending, send)
			default:
				return
			}
		}
	}
}

func sendWithTimeout(ctx context.Context, send func(context.Context)) {
	ctx, cancel := context.WithTimeout(ctx, replyTimeout)
	defer cancel()
	send(ctx)
}
