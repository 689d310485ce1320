package callback

import (
	"context"
	"time"
)

// Run looks, again and again, until ctx ends.
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
		c.rest(ctx, c.reconcile(ctx), changes, objects)
	}
	return nil
}

// rest returns when it is time to look again.
func (c *Controller) rest(ctx context.Context, wait time.Duration, changes, objects <-chan struct{}) {
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
			c.pause(ctx, minGap)
			return
		case <-c.messenger.news():
			c.pause(ctx, newsGap)
			return
		case <-objects: // its status changes all the time, by us too
			if c.deleted() != c.gone {
				return
			}
		}
	}
}

// pause returns when the last look is that long ago.
func (c *Controller) pause(ctx context.Context, gap time.Duration) {
	wait := gap - c.Clock.Since(c.looked)
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
