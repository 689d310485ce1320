package request

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/internal/webhook"
)

const (
	// workers is more than the slots of the receivers of live and of test keys together (webhook.MaxInFlight each), so that expiries and
	// deletions never wait behind a receiver that hangs.
	workers = 2*webhook.MaxInFlight + 8

	// maxRefusals is how often the store may refuse a request for its content before the request is skipped for refusedRest. The
	// cause may be temporary, such as a validation rule that is removed later.
	maxRefusals = 5
	refusedRest = 10 * time.Minute

	minBackoff = 100 * time.Millisecond
	maxBackoff = 30 * time.Second
)

// Item is a request that may have work to do.
type Item struct {
	ID string
	// Epoch is the claim's epoch, for stores whose workers compete; zero elsewhere.
	Epoch int64
	// Claimed is set if the item comes from a claim: when the request has to wait, the store returns it again.
	Claimed bool
}

// Sender makes one attempt to deliver an event; see webhook.Sender.
type Sender interface {
	Busy(to webhook.Endpoint) error
	Free(to webhook.Endpoint) int
	Send(ctx context.Context, to webhook.Endpoint, e webhook.Event) (webhook.Result, error)
}

// Options configure a Controller.
type Options struct {
	Store    verification.Store
	Settings func() *settings.Settings
	Sender   Sender
	// Namespace is the project's; it decides which addresses the webhook may reach.
	Namespace string
	// Clock is the time source; the real one if nil.
	Clock clock.PassiveClock
	// DeletesPerSecond limits the rate of deletions; zero is no limit.
	DeletesPerSecond float64
	// ClaimLease is how long a claim reserves a request for this worker; DefaultClaimLease if zero.
	ClaimLease time.Duration
	// Attempted is called after each recorded attempt, for the health of the receiver; may be nil.
	Attempted func(verification.Attempt)
	Metrics   *Metrics
	Log       logr.Logger
}

// Controller expires, delivers and deletes requests. One runs for each term of a lease.
type Controller struct {
	Options

	deletes  *deletionLimiter
	handed   handed
	unsaved  unsaved
	refusals refusals
	// Used by the claim loop only.
	nextSweep      time.Time
	claims, sweeps outage
}

// New returns a controller that is not running yet.
func New(o Options) *Controller {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Attempted == nil {
		o.Attempted = func(verification.Attempt) {}
	}
	if o.ClaimLease == 0 {
		o.ClaimLease = DefaultClaimLease
	}
	return &Controller{
		Options: o, deletes: newDeletionLimiter(o.DeletesPerSecond), handed: handed{views: map[Item]*view{}}, unsaved: newUnsaved(),
	}
}

// Run works on the items of the source until ctx ends, then waits for the work in progress. It may run again, as in the next term
// of a lease: attempts that could not be recorded are kept for that.
func (c *Controller) Run(ctx context.Context, from source.TypedSource[Item]) error {
	loop, err := controller.NewTypedUnmanaged("request", controller.TypedOptions[Item]{
		Reconciler:              c,
		MaxConcurrentReconciles: workers,
		// One loop runs per term of a lease, so the name repeats.
		SkipNameValidation: new(true),
		RecoverPanic:       new(true),
		RateLimiter:        workqueue.NewTypedItemExponentialFailureRateLimiter[Item](minBackoff, maxBackoff),
		Logger:             c.Log,
	})
	if err != nil {
		return fmt.Errorf("create request controller: %w", err)
	}
	if err := loop.Watch(from); err != nil {
		return fmt.Errorf("watch request source: %w", err)
	}
	if err := loop.Start(ctx); err != nil {
		return fmt.Errorf("run request controller: %w", err)
	}
	return nil
}

// pause is how long a request waits. held is set if it waits for a resource of this process (a slot, the rate of deletions) and
// not for its own time: this worker then keeps its claim.
type pause struct {
	length time.Duration
	held   bool
}

// Reconcile takes the steps that the request needs until it has to wait.
func (c *Controller) Reconcile(ctx context.Context, item Item) (reconcile.Result, error) {
	if item.Claimed {
		extended, cancel := extendContext(ctx, drainTime)
		defer cancel()
		ctx = extended
	}
	wait, err := c.advanceRequest(ctx, item)
	switch {
	case err == nil:
		c.refusals.forget(item.ID)
	case errors.Is(err, verification.ErrContent) && c.refusals.add(item.ID) >= maxRefusals:
		c.Metrics.countSkip()
		c.Log.Error(err, "request skipped: the store refuses its content", "request", item.ID)
		return reconcile.Result{RequeueAfter: refusedRest}, nil
	default:
		return reconcile.Result{}, err
	}
	if item.Claimed && !wait.held {
		c.handed.drop(item)
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: wait.length}, nil
}

// view is a request as it was read.
type view struct {
	verification.Request

	// claimedAt is the time of the claim that read it; zero if it came from the store's memory.
	claimedAt time.Time
}

// isFresh reports whether the view counts as read now: a claim reserved it for this worker a moment ago.
func (v *view) isFresh(now time.Time) bool {
	age := now.Sub(v.claimedAt)
	return 0 <= age && age < ClaimFresh
}

// advanceRequest takes steps until one has to wait, and returns for how long; zero if no step is left.
func (c *Controller) advanceRequest(ctx context.Context, item Item) (pause, error) {
	switch err := c.saveUnsaved(ctx, item); {
	case errors.Is(err, errEndOfTerm):
		return pause{}, nil
	case err != nil:
		return pause{}, fmt.Errorf("request %s: %w", item.ID, err)
	}
	v, err := c.readView(ctx, item)
	for err == nil {
		if item.Claimed && v.Epoch != item.Epoch {
			return pause{}, nil // another worker claimed it since
		}
		now := c.Clock.Now()
		action := verification.Next(&v.Request, now, c.currentPolicy())
		switch action.Step {
		case verification.StepExpire:
			v, err = c.expireRequest(ctx, v.Request)
		case verification.StepPlay:
			v, err = c.playOutcome(ctx, v.Request)
		case verification.StepDeliver:
			var wait time.Duration
			if v, wait, err = c.deliverEvent(ctx, item, v); wait > 0 {
				c.handed.keep(item, v)
				return pause{length: wait, held: true}, err
			}
		case verification.StepDelete:
			return c.deleteRequest(ctx, v.Request)
		default:
			return pause{length: action.At.Sub(now)}, nil
		}
	}
	if errors.Is(err, verification.ErrNotFound) || errors.Is(err, errEndOfTerm) {
		return pause{}, nil
	}
	return pause{}, fmt.Errorf("request %s: %w", item.ID, err)
}

// readView returns the state that the item's claim read, or else what the store remembers. It need not be current, because each
// step is checked against the current state.
func (c *Controller) readView(ctx context.Context, item Item) (view, error) {
	if v, ok := c.handed.take(item); ok {
		return v, nil
	}
	r, err := c.Store.ReadCached(ctx, item.ID)
	if err != nil {
		return view{}, fmt.Errorf("read request: %w", err)
	}
	return view{Request: r}, nil
}

func (c *Controller) currentPolicy() verification.Policy {
	current := c.Settings()
	p := verification.Policy{
		Retention: current.Retention, Events: current.EventPolicy(), TestEvents: current.TestEventPolicy(), Kinds: current.EventKinds(),
	}
	if current.Webhook != nil {
		p.Repaired = current.Webhook.Repaired
	}
	return p
}

func (c *Controller) expireRequest(ctx context.Context, r verification.Request) (view, error) {
	expired, err := c.updateClaimed(ctx, r, func(r *verification.Request, now time.Time) error {
		return r.Expire(now, c.Settings().EventKinds())
	})
	if err != nil {
		return view{}, fmt.Errorf("expire request: %w", err)
	}
	c.Metrics.countStep(verification.StepExpire)
	return view{Request: expired}, nil
}

// playOutcome plays the outcome of a test number.
func (c *Controller) playOutcome(ctx context.Context, r verification.Request) (view, error) {
	played, err := c.updateClaimed(ctx, r, func(r *verification.Request, now time.Time) error {
		return r.Play(now, c.Settings().EventKinds())
	})
	if err != nil {
		return view{}, fmt.Errorf("play outcome: %w", err)
	}
	c.Metrics.countStep(verification.StepPlay)
	return view{Request: played}, nil
}

// updateClaimed changes a request that no other worker has claimed since.
func (c *Controller) updateClaimed(
	ctx context.Context, r verification.Request, mutate verification.Mutation,
) (verification.Request, error) {
	epoch := r.Epoch
	changed, err := c.Store.Update(ctx, r.ID, func(r *verification.Request, now time.Time) error {
		if r.Epoch != epoch {
			return verification.ErrLeaseLost
		}
		return mutate(r, now)
	})
	if errors.Is(err, verification.ErrLeaseLost) {
		return changed, errEndOfTerm
	}
	return changed, err
}

// deleteRequest deletes a finished request. The store compares the version, because a redelivery may have been requested since.
func (c *Controller) deleteRequest(ctx context.Context, r verification.Request) (pause, error) {
	if wait := c.deletes.nextDelay(c.Clock.Now()); wait > 0 {
		return pause{length: wait, held: true}, nil
	}
	err := c.Store.Delete(ctx, r.ID, r.Version)
	switch {
	case errors.Is(err, verification.ErrConflict): // it changed: decide again
		return pause{length: addJitter(minBackoff), held: true}, nil
	case err != nil:
		return pause{}, fmt.Errorf("delete request %s: %w", r.ID, err)
	default:
		c.Metrics.countStep(verification.StepDelete)
		return pause{}, nil
	}
}

// deletionLimiter limits the rate of deletions. Each request that has to wait gets a slot of its own, so that a thousand of them do not all
// retry for the next one.
type deletionLimiter struct {
	limiter *rate.Limiter

	mu sync.Mutex
	// free is when all requests that wait will have had their slot.
	free time.Time
}

// newDeletionLimiter returns the limiter of a rate; nil, which limits nothing, for zero.
func newDeletionLimiter(perSecond float64) *deletionLimiter {
	if perSecond <= 0 {
		return nil
	}
	return &deletionLimiter{limiter: rate.NewLimiter(rate.Limit(perSecond), max(1, int(perSecond)))}
}

// nextDelay returns how long to wait before one more deletion; zero means now.
func (p *deletionLimiter) nextDelay(now time.Time) time.Duration {
	if p == nil || p.limiter.AllowN(now, 1) {
		return 0
	}
	slot := time.Duration(float64(time.Second) / float64(p.limiter.Limit()))
	p.mu.Lock()
	defer p.mu.Unlock()
	wait := min(max(0, p.free.Sub(now)), maxBackoff-slot)
	p.free = now.Add(wait + slot)
	return wait + addJitter(slot)
}

// addJitter spreads requests that wait for the same thing.
func addJitter(d time.Duration) time.Duration {
	return d + time.Duration(rand.Float64()*float64(d)) //nolint:gosec // no secret
}
