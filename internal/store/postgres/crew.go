package postgres

import "sync"

// workerGroup owns the goroutines of a store: those of Start, and those of its batchers, which end when no call waits.
type workerGroup struct {
	wg sync.WaitGroup

	mu     sync.Mutex
	closed bool
}

// Go runs f and reports whether it did; after Wait it does not. sync.WaitGroup forbids adding to an empty group that is being
// waited for, which an operation during the shutdown would do.
func (w *workerGroup) Go(f func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.wg.Go(f)
	}
	return !w.closed
}

// Wait closes the group and returns when all goroutines have ended.
func (w *workerGroup) Wait() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.wg.Wait()
}
