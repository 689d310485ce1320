package request

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
)

const (
	// redeliveryMinGap is the least time between two redeliveries of a project.
	redeliveryMinGap = time.Second
	// redeliveryMaxGap is the longest wait for a store or an API server that fails.
	redeliveryMaxGap = 30 * time.Second
)

// Projects is where the project's object comes from; see settings.Object.
type Projects interface {
	Project() *verifyv1.VerificationProject
	Observe() (changes <-chan struct{}, cancel func())
}

// RedeliveryOptions are what a Controller works with.
type RedeliveryOptions struct {
	Projects Projects
	Store    verification.Store
	// Observed writes status.observedRedeliver.
	Observed func(ctx context.Context, mark string) error
	// Tell is told the outcome in words for the project's events: refused wishes too.
	Tell func(project *verifyv1.VerificationProject, granted bool, message string)
	Log  logr.Logger
}

// RedeliveryController carries out wishes for redelivery. Make a new one for each term of a lease.
type RedeliveryController struct {
	RedeliveryOptions

	// handled is the last wish that was dealt with. The watch may still bring the status of before.
	handled string
}

// NewRedeliveryController returns a controller that has not begun.
func NewRedeliveryController(o RedeliveryOptions) *RedeliveryController {
	return &RedeliveryController{RedeliveryOptions: o}
}

// Run carries out the wish of each new annotation until ctx ends.
func (c *RedeliveryController) Run(ctx context.Context) error {
	changes, cancel := c.Projects.Observe()
	defer cancel()
	for ctx.Err() == nil {
		c.reconcileUntilDone(ctx)
		select {
		case <-changes:
			sleep(ctx, redeliveryMinGap)
		case <-ctx.Done():
		}
	}
	return nil
}

// reconcileUntilDone reconciles until that succeeds, or ctx ends.
func (c *RedeliveryController) reconcileUntilDone(ctx context.Context) {
	backoff := wait.Backoff{Duration: redeliveryMinGap, Factor: 2, Jitter: 0.1, Steps: 10, Cap: redeliveryMaxGap}
	for {
		err := c.reconcile(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		c.Log.Error(err, "a redelivery waits")
		sleep(ctx, backoff.Step())
	}
}

// reconcile carries out the annotation's wish, if it is a new one.
func (c *RedeliveryController) reconcile(ctx context.Context) error {
	project := c.Projects.Project()
	if project == nil {
		return nil
	}
	wish := project.Annotations[verifyv1.RedeliverAnnotation]
	if wish == "" || redeliveryMark(wish) == project.Status.ObservedRedeliver || wish == c.handled {
		return nil
	}
	granted, message := false, malformedRedelivery
	if id, ok := parseRedelivery(wish); ok {
		var err error
		if granted, message, err = c.redeliver(ctx, project, id, wish); err != nil {
			return err
		}
	}
	if err := c.Observed(ctx, redeliveryMark(wish)); err != nil {
		return fmt.Errorf("note the redelivery in the project's status: %w", err)
	}
	c.handled = wish
	c.Tell(project, granted, message)
	return nil
}

// redeliver makes the event due, or says why it is refused. An error is the store's.
func (c *RedeliveryController) redeliver(
	ctx context.Context, project *verifyv1.VerificationProject, id, wish string,
) (granted bool, message string, err error) {
	if project.Spec.Webhook == nil {
		return false, "the project has no webhook, so there is nowhere to send an event", nil
	}
	_, err = c.Store.Update(ctx, id, func(r *verification.Request, now time.Time) error { return r.Redeliver(wish, now) })
	return describeRedelivery(id, err)
}

// describeRedelivery says in words what the store's answer means for the wish. The words repeat an id only where it is that of a
// request: nobody knows what else stands there.
func describeRedelivery(id string, answer error) (granted bool, message string, err error) {
	switch {
	case answer == nil:
		return true, "the event of request " + id + " is sent once more", nil
	case errors.Is(answer, verification.ErrNotVerified):
		return false, "request " + id + " is not verified, so there is no event to send", nil
	case errors.Is(answer, verification.ErrNotFound):
		return false, "no such request is stored, so its event cannot be sent again", nil
	case errors.Is(answer, verification.ErrContent):
		return false, "request " + id + " cannot be changed", nil
	default:
		return false, "", fmt.Errorf("make the event due: %w", answer)
	}
}

// sleep returns after d, or when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
