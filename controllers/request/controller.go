package request

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
	// workers are more than one receiver may hold (webhook.MaxInFlight), so that requests which expire or go are
	// never behind a receiver that hangs.
	workers = webhook.MaxInFlight + 8

	// maxRefusals is how often a request may be refused for its own content before it is left alone, for refusedRest at
	// a time: the cause may be a rule that somebody sets and takes back.
	maxRefusals = 5
	refusedRest = 10 * time.Minute

	minBackoff = 100 * time.Millisecond
	maxBackoff = 30 * time.Second
)

// Item is a request that may need something.
type Item struct {
	ID string
	// Epoch is that of the claim, for stores whose workers compete; the zero value elsewhere.
	Epoch int64
	// Claimed says that the item comes from a claim: when the request has to wait, the store hands it out again.
	Claimed bool
}

// Sender makes one attempt to deliver an event; see webhook.Sender.
type Sender interface {
	Busy(to webhook.Endpoint) error
	Free(to webhook.Endpoint) int
	Send(ctx context.Context, to webhook.Endpoint, e webhook.Event) (webhook.Result, error)
}

// Options are what a Controller works with.
type Options struct {
	Store    verification.Store
	Settings func() *settings.Settings
	Sender   Sender
	// Namespace is the project's, which decides what its webhook may reach.
	Namespace string
	// Clock tells the time; the real one if nil.
	Clock clock.PassiveClock
	// DeletesPerSecond paces deletion; zero does not.
	DeletesPerSecond float64
	// ClaimLease is how long what was claimed is this worker's; DefaultClaimLease if zero.
	ClaimLease time.Duration
	// Attempted is told of every attempt that was recorded, for the health of the receiver; may be nil.
	Attempted func(verification.Attempt)
	Metrics   *Metrics
	Log       logr.Logger
}

// Controller moves requests on. Make a new one for each term of a lease.
type Controller struct {
	Options

	deletes  *rate.Limiter
	handed   handed
	unsaved  unsaved
	refusals refusals
	// Of the loop that claims.
	nextSweep      time.Time
	claims, sweeps outage
}

// New returns a controller that has not begun.
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
	c := &Controller{Options: o, unsaved: newUnsaved()}
	if o.DeletesPerSecond > 0 {
		c.deletes = rate.NewLimiter(rate.Limit(o.DeletesPerSecond), max(1, int(o.DeletesPerSecond)))
	}
	return c
}

// Run works on what the source hands in, until ctx ends; then it waits for the work in hand. It may run again after that, as in
// the next term of a lease: it knows then what it could not record before.
func (c *Controller) Run(ctx context.Context, from source.TypedSource[Item]) error {
	loop, err := controller.NewTypedUnmanaged("request", controller.TypedOptions[Item]{
		Reconciler:              c,
		MaxConcurrentReconciles: workers,
		// One loop per term of a lease: the name comes again.
		SkipNameValidation: new(true),
		RecoverPanic:       new(true),
		RateLimiter:        workqueue.NewTypedItemExponentialFailureRateLimiter[Item](minBackoff, maxBackoff),
		Logger:             c.Log,
	})
	if err != nil {
		return fmt.Errorf("make the request controller: %w", err)
	}
	if err := loop.Watch(from); err != nil {
		return fmt.Errorf("start the source of requests: %w", err)
	}
	return loop.Start(ctx)
}

// pause is how long a request waits. held says that it waits for us (a slot, the pace of deletions) and not for its own
// time: then a claim on it stays with this worker.
type pause struct {
	length time.Duration
	held   bool
}

// Reconcile does what the request needs until it has to wait.
func (c *Controller) Reconcile(ctx context.Context, item Item) (reconcile.Result, error) {
	wait, err := c.advance(ctx, item)
	switch {
	case err == nil:
		c.refusals.forget(item.ID)
	case errors.Is(err, verification.ErrContent) && c.refusals.add(item.ID) >= maxRefusals:
		c.Metrics.skipped()
		c.Log.Error(err, "left a request alone: the store refuses it for its own content", "request", item.ID)
		return reconcile.Result{RequeueAfter: refusedRest}, nil
	default:
		return reconcile.Result{}, err
	}
	if item.Claimed && !wait.held {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: wait.length}, nil
}

// view is a request as it was seen.
type view struct {
	verification.Request

	// claimedAt is when the claim was made that read it; zero if it was remembered by the store.
	claimedAt time.Time
}

// live tells whether it is as good as read now: a claim took it for this worker alone, a moment ago.
func (v *view) live(now time.Time) bool {
	age := now.Sub(v.claimedAt)
	return 0 <= age && age < ClaimFresh
}

// advance takes steps until one has to wait, and returns for how long; zero if nothing is ever to be done again.
func (c *Controller) advance(ctx context.Context, item Item) (pause, error) {
	if err := c.saveUnsaved(ctx, item); err != nil {
		return pause{}, err
	}
	v, err := c.look(ctx, item)
	for err == nil {
		if item.Claimed && v.Epoch != item.Epoch {
			return pause{}, nil // another worker claimed it since
		}
		now := c.Clock.Now()
		action := verification.Next(&v.Request, now, c.policy())
		switch action.Step {
		case verification.StepExpire:
			v, err = c.expire(ctx, v.Request)
		case verification.StepDeliver:
			var wait time.Duration
			if v, wait, err = c.deliver(ctx, item, v); wait > 0 {
				c.handed.keep(item, v)
				return pause{length: wait, held: true}, err
			}
		case verification.StepDelete:
			return c.delete(ctx, v.Request)
		default:
			return pause{length: action.At.Sub(now)}, nil
		}
	}
	if errors.Is(err, verification.ErrNotFound) || errors.Is(err, errEndOfTerm) {
		return pause{}, nil
	}
	return pause{}, fmt.Errorf("request %s: %w", item.ID, err)
}

// look returns what the item's claim read, or else what the store remembers. It need not be current: what is done because
// of it is done to the current state.
func (c *Controller) look(ctx context.Context, item Item) (view, error) {
	if v, ok := c.handed.take(item); ok {
		return v, nil
	}
	if memory, ok := c.Store.(verification.Recaller); ok {
		if r, ok := memory.Recall(item.ID); ok {
			return view{Request: r}, nil
		}
	}
	r, err := c.Store.Peek(ctx, item.ID)
	return view{Request: r}, err
}

func (c *Controller) policy() verification.Policy {
	current := c.Settings()
	return verification.Policy{Retention: current.Retention, Events: current.EventPolicy()}
}

func (c *Controller) expire(ctx context.Context, r verification.Request) (view, error) {
	epoch := r.Epoch
	expired, err := c.Store.Update(ctx, r.ID, func(r *verification.Request, now time.Time) error {
		if r.Epoch != epoch {
			return verification.ErrLeaseLost
		}
		return r.Expire(now)
	})
	if errors.Is(err, verification.ErrLeaseLost) {
		return view{}, errEndOfTerm
	}
	if err != nil {
		return view{}, fmt.Errorf("expire: %w", err)
	}
	c.Metrics.stepped(verification.StepExpire)
	return view{Request: expired}, nil
}

// delete removes a request that needs nothing more. It goes by the freshest state: an event may have been asked for anew.
func (c *Controller) delete(ctx context.Context, r verification.Request) (pause, error) {
	if wait := c.pace(); wait > 0 {
		return pause{length: wait, held: true}, nil
	}
	err := c.Store.Delete(ctx, r.ID, r.Version)
	switch {
	case errors.Is(err, verification.ErrConflict): // it changed: ask again
		return pause{length: jittered(minBackoff), held: true}, nil
	case err != nil:
		return pause{}, fmt.Errorf("request %s: delete: %w", r.ID, err)
	default:
		c.Metrics.stepped(verification.StepDelete)
		return pause{}, nil
	}
}

// pace returns how long to wait before one more deletion; zero means now.
func (c *Controller) pace() time.Duration {
	if c.deletes == nil {
		return 0
	}
	now := c.Clock.Now()
	reservation := c.deletes.ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
		return jittered(wait)
	}
	return 0
}

// jittered spreads what waits for the same thing.
func jittered(d time.Duration) time.Duration {
	return d + time.Duration(rand.Float64()*float64(d)) //nolint:gosec // no secret
}
