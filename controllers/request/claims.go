package request

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/internal/webhook"
)

const (
	// DefaultClaimLease is longer than the longest attempt (30 s), a wait for its slot and the write after it.
	DefaultClaimLease = 90 * time.Second
	// claimBatch is what one claim takes at most, sweepBatch what one sweep does of each kind.
	claimBatch = 100
	sweepBatch = 1000
	// ClaimFresh is how long a claim counts as a read. It took the row for this worker alone, for much longer.
	ClaimFresh = time.Second
	// minPoll and maxPoll bound the wait between claims: short while there is work, longer while there is none.
	minPoll = 50 * time.Millisecond
	maxPoll = time.Second
	// fullPoll is the wait after a claim that was full, for the workers to make room for the next.
	fullPoll = 2 * time.Millisecond
)

// announcer is a queue that knows of work which came up in this process.
type announcer interface{ Due() <-chan struct{} }

// Claims is the source for stores whose workers compete: it claims due work and hands it in.
func (c *Controller) Claims(queue verification.Queue) source.TypedSource[Item] {
	return source.TypedFunc[Item](func(ctx context.Context, work workqueue.TypedRateLimitingInterface[Item]) error {
		go c.claimUntilDone(ctx, queue, work) // a source must not block; the loop ends with the controller
		return nil
	})
}

func (c *Controller) claimUntilDone(ctx context.Context, queue verification.Queue, work workqueue.TypedRateLimitingInterface[Item]) {
	var due <-chan struct{} // never, unless the queue tells
	if a, ok := queue.(announcer); ok {
		due = a.Due()
	}
	wait := minPoll
	for {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-due:
			timer.Stop()
		case <-timer.C:
		}
		switch c.claimOnce(ctx, queue, work) {
		case full:
			wait = fullPoll
		case crowded:
			wait = min(2*wait, minPoll)
		case some:
			wait = minPoll
		case none:
			wait = min(2*max(wait, minPoll), maxPoll)
		}
	}
}

// haul is how much a claim brought in.
type haul int

const (
	none haul = iota
	some
	full    // all that was asked for: there may be more
	crowded // nothing was asked for: the workers have enough
)

// claimOnce hands in what is due and tells how much it was. It claims no more than can be begun soon, because what waits in
// a queue uses up its lease, and no little at a time, because each claim is a transaction.
func (c *Controller) claimOnce(ctx context.Context, queue verification.Queue, work workqueue.TypedRateLimitingInterface[Item]) haul {
	if c.Settings() == nil {
		return none // there is no project yet to do it for
	}
	more := c.sweep(ctx, queue)
	free := claimBatch - work.Len()
	if free < claimBatch/2 {
		return crowded
	}
	at := c.Clock.Now()
	claimed, err := queue.Claim(ctx, c.claimable(), free, c.ClaimLease)
	if ctx.Err() == nil {
		c.claims.heard(c.Log, c.Clock.Now(), "claim due requests", err)
	}
	if err != nil {
		return none
	}
	for _, r := range claimed {
		item := Item{ID: r.ID, Epoch: r.Epoch, Claimed: true}
		c.handed.keep(item, view{r, at})
		work.Add(item)
	}
	switch {
	case len(claimed) == free:
		return full
	case more || len(claimed) > 0:
		return some
	default:
		return none
	}
}

// claimable is the policy to claim by. While the receiver has all that it may have at once, its events are left to
// replicas that could send them.
func (c *Controller) claimable() verification.Policy {
	p := c.policy()
	if hook := c.Settings().Webhook; p.Events == verification.EventsOn && hook != nil {
		if c.Sender.Free(webhook.NewEndpoint(c.Namespace, hook)) == 0 {
			p.Events = verification.EventsPaused
		}
	}
	return p
}

// sweep does in bulk what can be, at most once per maxPoll unless there is more, and tells whether there is.
func (c *Controller) sweep(ctx context.Context, queue verification.Queue) bool {
	sweeper, ok := queue.(verification.Sweeper)
	if !ok || c.Clock.Now().Before(c.nextSweep) {
		return false
	}
	swept, err := sweeper.Sweep(ctx, c.policy(), sweepBatch)
	if ctx.Err() == nil {
		c.sweeps.heard(c.Log, c.Clock.Now(), "sweep requests", err)
	}
	c.Metrics.swept(swept)
	if swept.Expired == sweepBatch || swept.Deleted == sweepBatch {
		return true
	}
	c.nextSweep = c.Clock.Now().Add(maxPoll)
	return false
}

// handed holds requests as their claims read them, until the turn of each.
type handed struct{ views sync.Map }

// keep holds what a claim read, not what comes from the store.
func (h *handed) keep(item Item, v view) {
	if !v.claimedAt.IsZero() {
		h.views.Store(item, v)
	}
}

func (h *handed) take(item Item) (view, bool) {
	v, ok := h.views.LoadAndDelete(item)
	if !ok {
		return view{}, false
	}
	return v.(view), true //nolint:forcetypeassert // keep stores nothing else
}
