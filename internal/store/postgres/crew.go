package postgres

import "sync"

// crew owns the goroutines of a store: those of its batchers, each of which ends when nothing waits, and those of Start.
type crew struct {
	all sync.WaitGroup

	mu    sync.Mutex
	ended bool
}

// Go runs f, or tells that the crew takes nobody any more. Without that an operation that comes while the store closes
// would add to a group that is waited for, which sync.WaitGroup forbids once the group is empty.
func (c *crew) Go(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.all.Go(f)
	}
	return !c.ended
}

// Wait returns when all have gone. From its call on nobody comes.
func (c *crew) Wait() {
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	c.all.Wait()
}
