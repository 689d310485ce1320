package kubernetes

import (
	"context"
	"sync"
)

// sharedReads share the results of reads among callers with the same key. A caller may only get the result of a read that began
// after its call did: an older one may have passed the store before a write that was acknowledged to the caller. So a caller
// that meets a read in progress does not join it, as with singleflight, but the next one, which starts when the first ends and
// serves all callers that came in between. The zero value is ready.
type sharedReads[T any] struct {
	mu     sync.Mutex
	queues map[string]*readQueue[T]
}

// readQueue is the read in progress for one key, and the one that waits for its end; nil if there is none.
type readQueue[T any] struct {
	next *sharedRead[T]
}

type sharedRead[T any] struct {
	done  chan struct{}
	value T
	err   error
}

// do returns the result of a read that began after this call. The read has its own context, so no caller's end cancels it for
// the others.
func (f *sharedReads[T]) do(ctx context.Context, key string, read func(context.Context) (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	mine := f.join(ctx, key, read)
	select {
	case <-mine.done:
		return mine.value, mine.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

func (f *sharedReads[T]) join(ctx context.Context, key string, read func(context.Context) (T, error)) *sharedRead[T] {
	f.mu.Lock()
	defer f.mu.Unlock()
	if busy := f.queues[key]; busy != nil {
		if busy.next == nil {
			busy.next = &sharedRead[T]{done: make(chan struct{})}
		}
		return busy.next
	}
	if f.queues == nil {
		f.queues = make(map[string]*readQueue[T])
	}
	first := &sharedRead[T]{done: make(chan struct{})}
	f.queues[key] = &readQueue[T]{}
	go f.runReads(context.WithoutCancel(ctx), key, first, read)
	return first
}

// runReads makes one read after the other until no caller waits.
func (f *sharedReads[T]) runReads(ctx context.Context, key string, current *sharedRead[T], read func(context.Context) (T, error)) {
	for current != nil {
		current.value, current.err = read(ctx)
		close(current.done)
		current = f.finish(key)
	}
}

// finish returns the next read of the queue, or removes the queue.
func (f *sharedReads[T]) finish(key string) *sharedRead[T] {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := f.queues[key].next
	f.queues[key].next = nil
	if next == nil {
		delete(f.queues, key)
	}
	return next
}

// keyedLocks let one caller of this process at a time work on one key: racers of one replica queue here, and cause no conflicts
// of resourceVersions. The zero value is ready.
type keyedLocks struct {
	mu   sync.Mutex
	held map[string]*keyedLock
}

type keyedLock struct {
	turn  chan struct{}
	users int
}

// lock returns the function that unlocks, or the error of ctx if that ends first.
func (l *keyedLocks) lock(ctx context.Context, key string) (func(), error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	if l.held == nil {
		l.held = make(map[string]*keyedLock)
	}
	t := l.held[key]
	if t == nil {
		t = &keyedLock{turn: make(chan struct{}, 1)}
		l.held[key] = t
	}
	t.users++
	l.mu.Unlock()

	select {
	case t.turn <- struct{}{}:
		return func() {
			<-t.turn
			l.release(key, t)
		}, nil
	case <-ctx.Done():
		l.release(key, t)
		return nil, ctx.Err()
	}
}

func (l *keyedLocks) release(key string, t *keyedLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.users--; t.users == 0 {
		delete(l.held, key)
	}
}
