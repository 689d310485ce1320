package project

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// passPeriod is how often free turns are looked for without an event: none comes when a rollout takes too long to count any
// longer, or when a project that was requeued did not take its turn.
const passPeriod = time.Minute

// queuedSource is a source of the controller. It requeues the projects that wait for a turn once per passPeriod, if there is one
// for them. The projects themselves need no delay, so those that must wait cost nothing.
type queuedSource struct{ *Controller }

// Start requeues until ctx ends.
func (s queuedSource) Start(ctx context.Context, queue queue) error {
	go wait.UntilWithContext(ctx, func(ctx context.Context) { s.addQueued(ctx, queue) }, passPeriod)
	return nil
}

// String returns the source's name in logs.
func (s queuedSource) String() string { return "source of queued projects" }

// addQueued adds the projects that wait for a turn and can have one now.
func (c *Controller) addQueued(ctx context.Context, queue queue) {
	next, err := c.turns.nextWaiting(ctx, c.client, c.MaxUnreadyRollouts, c.Clock.Now())
	if err != nil {
		c.Log.Error(err, "find projects with a turn failed, will retry")
		return
	}
	for _, project := range next {
		queue.Add(reconcile.Request{NamespacedName: project})
	}
}
