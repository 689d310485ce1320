package request

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/phoneproof/phoneproof/internal/verification"
)

const (
	// DefaultClaimLease is longer than the longest attempt (30 s), the wait for its slot and the write that records it.
	DefaultClaimLease = 90 * time.Second
	// drainTime bounds the work in progress when the process ends. With a RecordTimeout each for the last records and for the release of
	// claims, it fits into the 10 s that a pod has for the work behind its API.
	drainTime = 6 * time.Second
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

// RunClaims is Run for stores whose workers compete: it claims due requests until ctx ends. Then it finishes the work in progress, for up
// to drainTime, and releases the other claims, so that other workers need not wait for the end of their leases.
func (c *Controller) RunClaims(ctx context.Context, queue verification.Queue) error {
	claiming := make(chan struct{})
	err := c.Run(ctx, source.TypedFunc[Item](func(_ context.Context, work workqueue.TypedRateLimitingInterface[Item]) error {
		go func() { // a source must not block
			defer close(claiming)
			c.claimUntilDone(ctx, queue, work)
		}()
		return nil
	}))
	if err != nil {
		return err
	}
	<-claiming
	c.releaseClaims(ctx, queue)
	return nil
}

// releaseClaims releases the claims whose work is not done. Those with an attempt that could not be recorded keep their leases, because
// another worker would repeat it at once.
func (c *Controller) releaseClaims(ctx context.Context, queue verification.Queue) {
	claims := c.handed.listClaims()
	maps.DeleteFunc(claims, func(id string, _ int64) bool {
		_, attempted := c.unsaved.get(id)
		return attempted
	})
	if len(claims) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), RecordTimeout)
	defer cancel()
	if err := queue.Release(ctx, claims); err != nil {
		c.Log.Error(err, "release claims failed, other workers wait for their leases", "claims", len(claims))
	}
}

// extendContext returns a context that ends a while after ctx.
func extendContext(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	extended, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(by, cancel) })
	return extended, func() {
		stop()
		cancel()
	}
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
	if free < claimBatch/2 || ctx.Err() != nil {
		return claimSkipped
	}
	at := c.Clock.Now()
	// If a claim is cancelled, it may be granted and its requests not known here.
	claimed, err := queue.Claim(context.WithoutCancel(ctx), c.claimPolicy(), free, c.ClaimLease)
	c.claims.logResult(c.Log, c.Clock.Now(), "claim due requests", err)
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

// handed holds the claims of this worker until their work is done, each with what it read until that is used.
type handed struct {
	mu    sync.Mutex
	views map[Item]*view
}

// keep holds what a claim read. What comes from the store is read again instead.
func (h *handed) keep(item Item, v view) {
	if v.claimedAt.IsZero() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.views[item] = &v
}

func (h *handed) take(item Item) (view, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := h.views[item]
	if v == nil {
		return view{}, false
	}
	h.views[item] = nil
	return *v, true
}

// drop forgets a claim whose work is done.
func (h *handed) drop(item Item) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.views, item)
}

// listClaims returns the claims as epochs by request id, the latest of each request.
func (h *handed) listClaims() map[string]int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	claims := make(map[string]int64, len(h.views))
	for item := range h.views {
		claims[item.ID] = max(claims[item.ID], item.Epoch)
	}
	return claims
}
