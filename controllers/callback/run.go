package callback

import (
	"context"
	"time"
)

// Run checks repeatedly until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	changes, cancel := c.Changes()
	defer cancel()
	var objects <-chan struct{}
	if c.Projects != nil {
		var stop func()
		objects, stop = c.Projects.Observe()
		defer stop()
	}
	for ctx.Err() == nil {
		c.waitUntilDue(ctx, c.reconcileOnce(ctx), changes, objects)
	}
	return nil
}

// waitUntilDue returns when the next check is due.
func (c *Controller) waitUntilDue(ctx context.Context, wait time.Duration, changes, objects <-chan struct{}) {
	var due <-chan time.Time
	if wait > 0 {
		timer := c.Clock.NewTimer(wait)
		defer timer.Stop()
		due = timer.C()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-due:
			return
		case <-changes:
			c.failures = 0
			c.waitGap(ctx, minGap)
			return
		case <-c.messenger.pollChanges():
			c.waitGap(ctx, pollGap)
			return
		case <-objects: // its status changes often, also by our own writes
			if c.isProjectDeleted() != c.projectDeleted {
				return
			}
		}
	}
}

// waitGap returns when the last check is that long ago.
func (c *Controller) waitGap(ctx context.Context, gap time.Duration) {
	wait := gap - c.Clock.Since(c.checkedAt)
	if wait <= 0 {
		return
	}
	timer := c.Clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	}
}
