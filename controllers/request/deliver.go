package request

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/utils/lru"

	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/internal/webhook"
)

// errEndOfTerm ends the work on a request that this worker may not, or need not, continue: the holder of the lease does.
var errEndOfTerm = errors.New("request is no longer claimed by this worker")

// RecordTimeout bounds the write that records an attempt. The write is made even after the end of the term: the receiver has the
// event, and the next worker has to know that.
const RecordTimeout = 2 * time.Second

// deliverEvent makes one attempt, if the current state still needs it, and returns the state after it. A wait above zero means that no
// attempt could be made now.
func (c *Controller) deliverEvent(ctx context.Context, item Item, v view) (view, time.Duration, error) {
	current := c.Settings()
	to, found := c.receiverOf(current.Webhook, v.Test)
	if !found { // it was removed a moment ago
		return view{}, minBackoff, nil
	}
	if err := c.Sender.Busy(to); err != nil { // before the read: waiting for a slot must not load the store
		return v, waitFor(err), nil
	}
	if !v.isFresh(c.Clock.Now()) {
		r, wanted, err := c.readIfDue(ctx, item)
		v = view{Request: r}
		if err != nil || !wanted {
			return v, 0, err
		}
	}
	event, err := webhook.NewEvent(current.ProjectID, &v.Request)
	if err != nil {
		return view{}, 0, fmt.Errorf("build event: %w: %w", verification.ErrContent, err)
	}
	extra := v.Delivery.NextAttemptAt.After(c.Clock.Now())
	result, err := c.Sender.Send(ctx, to, event)
	if err != nil {
		return v, waitFor(err), unlessWaiting(err)
	}
	attempt := result.Attempt(v.Delivery.Attempts+1, v.Epoch, c.Clock.Now(), rand.Float64)
	if extra {
		attempt = result.ExtraAttempt(v.Delivery, v.Epoch, attempt.At)
	}
	attempt.Redelivered, attempt.Event = v.Redelivered, v.Event()
	c.unsaved.put(item.ID, attempt)
	r, wait, err := c.recordAttempt(ctx, item.ID, attempt)
	if err == nil && item.Claimed {
		err = errEndOfTerm // the record has ended the claim: what is left to do may be claimed by another worker by now
	}
	return view{Request: r}, wait, err
}

// receiverOf returns where the events of test keys, or all others, are sent; false if nowhere.
func (c *Controller) receiverOf(hook *settings.Webhook, test bool) (webhook.Endpoint, bool) {
	switch {
	case hook == nil, test && hook.TestURL == "":
		return webhook.Endpoint{}, false
	case test:
		return webhook.NewTestEndpoint(c.Namespace, hook), true
	default:
		return webhook.NewEndpoint(c.Namespace, hook), true
	}
}

// readIfDue reads the current state, and reports whether that needs an attempt too.
func (c *Controller) readIfDue(ctx context.Context, item Item) (verification.Request, bool, error) {
	r, err := c.Store.Read(ctx, item.ID)
	if err != nil {
		return r, false, fmt.Errorf("read request before sending: %w", err)
	}
	if item.Claimed && r.Epoch != item.Epoch {
		return r, false, errEndOfTerm
	}
	return r, verification.Next(&r, c.Clock.Now(), c.currentPolicy()).Step == verification.StepDeliver, nil
}

// waitFor returns how long to wait after an error of Send that does not count as an attempt; zero for other errors.
func waitFor(err error) time.Duration {
	var busy *webhook.BusyError
	switch {
	case errors.As(err, &busy):
		return busy.After // the sender already spreads these times
	case errors.Is(err, webhook.ErrPaused):
		return verification.PausedRecheck
	case errors.Is(err, webhook.ErrNoResources), errors.Is(err, webhook.ErrNotLeading):
		// A lease that was not renewed in time is mostly renewed a moment later; if not, the term ends, and the queue with it.
		return addJitter(time.Second)
	default:
		return 0
	}
}

// unlessWaiting returns the error that ends the work on a request for now.
func unlessWaiting(err error) error {
	switch {
	case waitFor(err) > 0:
		return nil
	case errors.Is(err, context.Canceled):
		return errEndOfTerm
	default:
		return fmt.Errorf("send event: %w", err)
	}
}

// recordAttempt stores an attempt.
func (c *Controller) recordAttempt(
	ctx context.Context, id string, attempt verification.Attempt,
) (verification.Request, time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), RecordTimeout)
	defer cancel()
	r, err := c.Store.Update(ctx, id, func(r *verification.Request, _ time.Time) error { return r.RecordAttempt(attempt) })
	switch {
	case err == nil:
		c.unsaved.drop(id)
		c.Metrics.countStep(verification.StepDeliver)
		if !r.Test { // the condition of the receiver is about real events
			c.Attempted(attempt)
		}
		return r, 0, nil
	case errors.Is(err, verification.ErrLeaseLost): // the attempt is kept: the newer claim may be this worker's own
		return r, 0, errEndOfTerm
	case errors.Is(err, verification.ErrStaleAttempt):
		c.unsaved.drop(id) // another worker recorded an attempt: its state counts
		return r, 0, errEndOfTerm
	case errors.Is(err, verification.ErrNotFound):
		c.unsaved.drop(id)
	}
	return r, 0, fmt.Errorf("record attempt: %w", err)
}

// saveUnsaved records an attempt that could not be recorded when it was made, so that it is not made again. If the store refuses
// writes for long, the claim ends meanwhile; the attempt is then recorded under this worker's next claim, which the record ends: that is
// errEndOfTerm.
func (c *Controller) saveUnsaved(ctx context.Context, item Item) error {
	attempt, ok := c.unsaved.get(item.ID)
	if !ok {
		return nil
	}
	c.handed.take(item) // the claim read it without this attempt
	if item.Epoch > attempt.Epoch {
		attempt.Epoch = item.Epoch
		c.unsaved.put(item.ID, attempt)
	}
	_, _, err := c.recordAttempt(ctx, item.ID, attempt)
	switch {
	case err == nil && item.Claimed:
		return errEndOfTerm // as after an attempt that could be recorded at once
	case err == nil, errors.Is(err, errEndOfTerm), errors.Is(err, verification.ErrNotFound):
		return nil
	default:
		return fmt.Errorf("save attempt: %w", err)
	}
}

// maxUnsaved is far more than the workers attempt between two outages.
const maxUnsaved = 4096

// unsaved holds attempts that were made but not yet recorded. If there are too many, the oldest are dropped, and made again.
type unsaved struct{ attempts *lru.Cache }

func newUnsaved() unsaved { return unsaved{lru.New(maxUnsaved)} }

func (u unsaved) put(id string, a verification.Attempt) { u.attempts.Add(id, a) }
func (u unsaved) drop(id string)                        { u.attempts.Remove(id) }

func (u unsaved) get(id string) (verification.Attempt, bool) {
	a, ok := u.attempts.Get(id)
	if !ok {
		return verification.Attempt{}, false
	}
	return a.(verification.Attempt), true //nolint:forcetypeassert // put stores nothing else
}

// refusals counts how often the store refused each request for its content.
type refusals struct {
	mu    sync.Mutex
	count map[string]int
}

func (r *refusals) add(id string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == nil {
		r.count = make(map[string]int)
	}
	r.count[id]++
	return r.count[id]
}

func (r *refusals) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.count, id)
}
