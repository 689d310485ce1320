package request

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/phoneproof/phoneproof/internal/verification"
)

const (
	// claimLease is longer than the longest attempt (30 s), a wait for its slot and the write after it.
	claimLease = 90 * time.Second
	// claimBatch is what one claim takes at most.
	claimBatch = 100
	// minPoll and maxPoll bound the wait between claims: short while there is work, longer while there is none.
	minPoll = 50 * time.Millisecond
	maxPoll = time.Second
)

// Claims is the source for stores whose workers compete: it claims due work and hands it in.
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
		case <-timer.C:
		}
		if c.claimOnce(ctx, queue, work) {
			wait = minPoll
		} else {
			wait = min(2*wait, maxPoll)
		}
	}
}

// claimOnce hands in what is due and tells whether there was anything. It claims no more than can be begun soon: what
// waits in a queue uses up its lease.
func (c *Controller) claimOnce(ctx context.Context, queue verification.Queue, work workqueue.TypedRateLimitingInterface[Item]) bool {
	free := claimBatch - work.Len()
	if free <= 0 {
		return true
	}
	claimed, err := queue.Claim(ctx, c.policy(), free, claimLease)
	if err != nil {
		c.Log.Error(err, "claim due requests")
		return false
	}
	for _, r := range claimed {
		work.Add(Item{ID: r.ID, Epoch: r.Epoch, Claimed: true})
	}
	return len(claimed) > 0
}
