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

// SendFunc sends a message to a user. It has to heed its context.
type SendFunc func(context.Context) error

// ReplyQueue sends replies. Nothing is sent before Start.
type ReplyQueue struct {
	waiting chan SendFunc
	send    func(context.Context, SendFunc)
}

// NewReplyQueue returns an empty queue, which passes each reply to send in its turn.
func NewReplyQueue(send func(context.Context, SendFunc)) *ReplyQueue {
	return &ReplyQueue{waiting: make(chan SendFunc, ReplyQueueSize), send: send}
}

// Add adds a reply. It reports whether there was room.
func (q *ReplyQueue) Add(reply SendFunc) bool {
	select {
	case q.waiting <- reply:
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
		case reply := <-q.waiting:
			q.sendWithTimeout(ending, reply)
		case <-ctx.Done():
			select {
			case reply := <-q.waiting:
				q.sendWithTimeout(ending, reply)
			default:
				return
			}
		}
	}
}

func (q *ReplyQueue) sendWithTimeout(ctx context.Context, reply SendFunc) {
	ctx, cancel := context.WithTimeout(ctx, replyTimeout)
	defer cancel()
	q.send(ctx, reply)
}
