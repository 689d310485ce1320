package request

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/phoneproof/phoneproof/internal/verification"
)

const (
	// DefaultClaimLease is longer than the longest attempt (30 s), the wait for its slot and the write that records it.
	DefaultClaimLease = 90 * time.Second
	// claimBatch is the most that one claim takes, sweepBatch the most that one sweep does of each kind.
	claimBatch = 100
	sweepBatch = 1000
	// ClaimFresh is how long a claim counts as a read. The claim itself reserves the row for this worker for much longer.
	ClaimFresh = time.Second
	// minPoll and maxPoll bound the wait between claims: short while there is work, longer while there is none.
	minPoll = 50 * time.Millisecond
	maxPoll = time.Second
	// fullPoll is the wait after a full claim. It lets the workers make room for the next one.
	fullPoll = 2 * time.Millisecond
)

// Claims returns the source for stores whose workers compete: it claims due work and adds it to the workqueue.
func (c *Controller) Claims(queue verification.Queue) source.TypedSource[Item] {
	return source.TypedFunc[Item](func(ctx context.Context, work workqueue.TypedRateLimitingInterface[Item]) error {
		go c.claimUntilDone(ctx, queue, work) // a source must not block; the loop ends with the controller
		return nil
	})
}

func (c *Controller) claimUntilDone(ctx context.Context, queue verification.Queue, work workqueue.TypedRateLimitingInterface[Item]) {
	wait := minPoll
	for {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-queue.Due():
			timer.Stop()
		case <-timer.C:
		}
		switch c.claimOnce(ctx, queue, work) {
		case claimedFull:
			wait = fullPoll
		case claimSkipped:
			wait = min(2*wait, minPoll)
		case claimedSome:
			wait = minPoll
		case claimedNone:
			wait = min(2*max(wait, minPoll), maxPoll)
		}
	}
}

// claimSize is how much a claim returned.
type claimSize int

const (
	claimedNone claimSize = iota
	claimedSome
	claimedFull  // all that was requested: there may be more
	claimSkipped // nothing was requested: the workers have enough
)

// claimOnce adds due requests to the workqueue and returns how many there were. It claims only what can start soon, because a
// queued request uses up its lease, and never just a few, because each claim is a transaction.
func (c *Controller) claimOnce(ctx context.Context, queue verification.Queue, work workqueue.TypedRateLimitingInterface[Item]) claimSize {
	if c.Settings() == nil {
		return claimedNone // there is no project yet
	}
	more := c.sweepRequests(ctx, queue)
	free := claimBatch - work.Len()
	if free < claimBatch/2 {
		return claimSkipped
	}
	at := c.Clock.Now()
	claimed, err := queue.Claim(ctx, c.claimPolicy(), free, c.ClaimLease)
	if ctx.Err() == nil {
		c.claims.logResult(c.Log, c.Clock.Now(), "claim due requests", err)
	}
	if err != nil {
		return claimedNone
	}
	for _, r := range claimed {
		item := Item{ID: r.ID, Epoch: r.Epoch, Claimed: true}
		c.handed.keep(item, view{r, at})
		work.Add(item)
	}
	switch {
	case len(claimed) == free:
		return claimedFull
	case more || len(claimed) > 0:
		return claimedSome
	default:
		return claimedNone
	}
}

// claimPolicy returns the policy to claim by. While the receiver has no free slot, its events are left to replicas that could
// send them.
func (c *Controller) claimPolicy() verification.Policy {
	p, hook := c.currentPolicy(), c.Settings().Webhook
	for _, test := range []bool{false, true} {
		events := &p.Events
		if test {
			events = &p.TestEvents
		}
		to, found := c.receiverOf(hook, test)
		if *events == verification.EventsOn && found && c.Sender.Free(to) == 0 {
			*events = verification.EventsPaused
		}
	}
	return p
}

// sweepRequests expires and deletes requests in bulk, at most once per maxPoll unless there are more. It reports whether there
// are more.
func (c *Controller) sweepRequests(ctx context.Context, queue verification.Queue) bool {
	if c.Clock.Now().Before(c.nextSweep) {
		return false
	}
	swept, err := queue.Sweep(ctx, c.currentPolicy(), sweepBatch)
	if ctx.Err() == nil {
		c.sweeps.logResult(c.Log, c.Clock.Now(), "sweep requests", err)
	}
	c.Metrics.countSwept(swept)
	if swept.Expired == sweepBatch || swept.Deleted == sweepBatch {
		return true
	}
	c.nextSweep = c.Clock.Now().Add(maxPoll)
	return false
}

// handed holds requests as their claims read them, until they are reconciled.
type handed struct{ views sync.Map }

// keep holds what a claim read. What comes from the store is read again instead.
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
