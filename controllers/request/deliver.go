package request

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/utils/lru"

	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/internal/webhook"
)

// errEndOfTerm says that this worker may not, or need not, go on with the request: whoever holds the lease does.
var errEndOfTerm = errors.New("the request is no longer this worker's")

// RecordTimeout bounds the write that records an attempt. It is made even when the term has ended meanwhile: the
// receiver has the event, and the next worker should know.
const RecordTimeout = 2 * time.Second

// deliver makes one attempt, if the freshest state still asks for it, and returns the state after it. A wait above zero
// means that no attempt could be made now.
func (c *Controller) deliver(ctx context.Context, item Item, v view) (view, time.Duration, error) {
	current := c.Settings()
	if current.Webhook == nil { // it was there a moment ago
		return view{}, minBackoff, nil
	}
	to := webhook.NewEndpoint(c.Namespace, current.Webhook)
	if err := c.Sender.Busy(to); err != nil { // before the read: what waits for a slot must cost the store nothing
		return v, waitFor(err), nil
	}
	if !v.live(c.Clock.Now()) {
		r, wanted, err := c.stillDue(ctx, item)
		v = view{Request: r}
		if err != nil || !wanted {
			return v, 0, err
		}
	}
	event, err := webhook.NewEvent(current.ProjectID, &v.Request)
	if err != nil {
		return view{}, 0, fmt.Errorf("build event: %w: %w", verification.ErrContent, err)
	}
	result, err := c.Sender.Send(ctx, to, event)
	if err != nil {
		return v, waitFor(err), unlessWaiting(err)
	}
	attempt := result.Attempt(v.Delivery.Attempts+1, v.Epoch, c.Clock.Now(), rand.Float64)
	attempt.Redelivered = v.Redelivered
	c.unsaved.put(item.ID, attempt)
	r, wait, err := c.record(ctx, item.ID, attempt)
	return view{Request: r}, wait, err
}

// stillDue reads the freshest state, and tells whether that asks for an attempt too.
func (c *Controller) stillDue(ctx context.Context, item Item) (verification.Request, bool, error) {
	r, err := c.Store.Get(ctx, item.ID)
	if err != nil {
		return r, false, fmt.Errorf("read before sending: %w", err)
	}
	if item.Claimed && r.Epoch != item.Epoch {
		return r, false, errEndOfTerm
	}
	return r, verification.Next(&r, c.Clock.Now(), c.policy()).Step == verification.StepDeliver, nil
}

// waitFor returns how long to wait after an error of Send that is no attempt; zero if another answer fits.
func waitFor(err error) time.Duration {
	var busy *webhook.BusyError
	switch {
	case errors.As(err, &busy):
		return busy.After // each caller is told another time already
	case errors.Is(err, webhook.ErrPaused):
		return verification.PausedRecheck
	case errors.Is(err, webhook.ErrNoResources), errors.Is(err, webhook.ErrNotLeading):
		// A lease that was not renewed for a moment is mostly renewed the next; if not, the term ends, and the queue
		// with it.
		return jittered(time.Second)
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
		return fmt.Errorf("send: %w", err)
	}
}

// record persists an attempt.
func (c *Controller) record(
	ctx context.Context, id string, attempt verification.Attempt,
) (verification.Request, time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), RecordTimeout)
	defer cancel()
	r, err := c.Store.Update(ctx, id, func(r *verification.Request, _ time.Time) error { return r.RecordAttempt(attempt) })
	switch {
	case err == nil:
		c.unsaved.drop(id)
		c.Metrics.stepped(verification.StepDeliver)
		c.Attempted(attempt)
		return r, 0, nil
	case errors.Is(err, verification.ErrLeaseLost): // it is kept: the claim since may be this worker's own
		return r, 0, errEndOfTerm
	case errors.Is(err, verification.ErrStaleAttempt):
		c.unsaved.drop(id) // another worker recorded one: its state counts
		return r, 0, errEndOfTerm
	case errors.Is(err, verification.ErrNotFound):
		c.unsaved.drop(id)
	}
	return r, 0, fmt.Errorf("record attempt: %w", err)
}

// saveUnsaved records the attempt that could not be recorded when it was made, so that it is not made again. Where the
// store refuses writes for long the claim ends meanwhile: the attempt is then recorded under the next one of this worker.
func (c *Controller) saveUnsaved(ctx context.Context, item Item) error {
	attempt, ok := c.unsaved.get(item.ID)
	if !ok {
		return nil
	}
	c.handed.take(item) // the claim read it without the attempt
	if item.Epoch > attempt.Epoch {
		attempt.Epoch = item.Epoch
		c.unsaved.put(item.ID, attempt)
	}
	_, _, err := c.record(ctx, item.ID, attempt)
	if err != nil && !errors.Is(err, errEndOfTerm) && !errors.Is(err, verification.ErrNotFound) {
		return fmt.Errorf("request %s: %w", item.ID, err)
	}
	return nil
}

// maxUnsaved is far more than the workers make between two outages.
const maxUnsaved = 4096

// unsaved holds attempts that were made but not yet recorded. Of too many the oldest are forgotten, and made again.
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

// refusals counts how often each request was refused for its own content.
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
