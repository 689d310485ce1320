package kubernetes

import (
	"context"
	"sync"
)

// flights share the answers of reads among callers who ask the same. A caller may only have the answer of a read that
// began after his call did: an older one may have passed the store before a write that was acknowledged to him. So a
// caller who finds a read under way does not join it (as singleflight would have him do) but the one after it, which
// starts when the first is done and serves everybody who came in between. The zero value is ready.
type flights[T any] struct {
	mu    sync.Mutex
	lanes map[string]*lane[T]
}

// lane is the read under way for one key and the one that waits for its end, nil if nobody asked for it.
type lane[T any] struct {
	next *flight[T]
}

type flight[T any] struct {
	done  chan struct{}
	value T
	err   error
}

// do returns what a read that began after this call returned. The read has its own context: no caller's end cancels
// it for the others.
func (f *flights[T]) do(ctx context.Context, key string, read func(context.Context) (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	mine := f.board(ctx, key, read)
	select {
	case <-mine.done:
		return mine.value, mine.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

func (f *flights[T]) board(ctx context.Context, key string, read func(context.Context) (T, error)) *flight[T] {
	f.mu.Lock()
	defer f.mu.Unlock()
	if busy := f.lanes[key]; busy != nil {
		if busy.next == nil {
			busy.next = &flight[T]{done: make(chan struct{})}
		}
		return busy.next
	}
	if f.lanes == nil {
		f.lanes = make(map[string]*lane[T])
	}
	first := &flight[T]{done: make(chan struct{})}
	f.lanes[key] = &lane[T]{}
	go f.run(context.WithoutCancel(ctx), key, first, read)
	return first
}

// run reads for one flight after the other until nobody waits.
func (f *flights[T]) run(ctx context.Context, key string, current *flight[T], read func(context.Context) (T, error)) {
	for current != nil {
		current.value, current.err = read(ctx)
		close(current.done)
		current = f.land(key)
	}
}

// land returns the next flight of the lane, or closes it.
func (f *flights[T]) land(key string) *flight[T] {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := f.lanes[key].next
	f.lanes[key].next = nil
	if next == nil {
		delete(f.lanes, key)
	}
	return next
}

// locks let one caller of this process at a time work on one key: racers of one replica then queue here, and do not
// fight over resourceVersions. The zero value is ready.
type locks struct {
	mu   sync.Mutex
	held map[string]*turnstile
}

type turnstile struct {
	turn  chan struct{}
	users int
}

// lock returns the function that unlocks, or the error of a context that ended first.
func (l *locks) lock(ctx context.Context, key string) (func(), error) {
	l.mu.Lock()
	if l.held == nil {
		l.held = make(map[string]*turnstile)
	}
	t := l.held[key]
	if t == nil {
		t = &turnstile{turn: make(chan struct{}, 1)}
		l.held[key] = t
	}
	t.users++
	l.mu.Unlock()

	select {
	case t.turn <- struct{}{}:
		return func() {
			<-t.turn
			l.leave(key, t)
		}, nil
	case <-ctx.Done():
		l.leave(key, t)
		return nil, ctx.Err()
	}
}

func (l *locks) leave(key string, t *turnstile) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.users--; t.users == 0 {
		delete(l.held, key)
	}
}
