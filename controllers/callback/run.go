package callback

import (
	"context"
	"time"

	"github.com/phoneproof/phoneproof/controllers"
)

// Run checks repeatedly until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	changes, cancel := c.Changes()
	defer cancel()
	woken := []<-chan struct{}{changes, c.messenger.pollChanges()}
	if c.Projects != nil {
		objects, stop := c.Projects.Observe()
		defer stop()
		woken = append(woken, objects)
	}
	return controllers.Run(ctx, controllers.Options{
		Reconcile: func(ctx context.Context) (time.Duration, error) { return c.reconcileIfDue(ctx), nil },
		Changes:   woken, Clock: c.Clock, Log: c.Log,
	})
}

// reconcileIfDue checks if that is due, and returns when it is next; zero if only a change can make a difference. The project's
// status changes often, also by our own writes, and that alone makes no check due.
func (c *Controller) reconcileIfDue(ctx context.Context) time.Duration {
	if wait, due := c.untilDue(); !due {
		return wait
	}
	wait := c.reconcileOnce(ctx)
	c.dueAt = time.Time{}
	if wait > 0 {
		c.dueAt = c.Clock.Now().Add(wait)
	}
	return wait
}

// untilDue reports whether a check is due, and if not, how long it is until then; zero if only a change can make it due.
func (c *Controller) untilDue() (wait time.Duration, due bool) {
	at := c.dueAt
	switch {
	case c.checkedAt.IsZero(), c.isProjectDeleted() != c.projectDeleted:
		return 0, true
	case c.Settings() != c.checkedSettings:
		c.failures = 0
		at = c.checkedAt.Add(minGap)
	case c.messenger.pollVersion() != c.checkedPoll:
		at = c.checkedAt.Add(pollGap)
	case at.IsZero():
		return 0, false
	}
	wait = at.Sub(c.Clock.Now())
	return wait, wait <= 0
}
