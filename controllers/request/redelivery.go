package request

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// redeliveryMinGap is the least time between two redeliveries of a project.
const redeliveryMinGap = time.Second

// Projects provides the project's object; see object in internal/server.
type Projects interface {
	Project() *verifyv1.VerificationProject
	Observe() (changes <-chan struct{}, cancel func())
}

// RedeliveryOptions configure a RedeliveryController.
type RedeliveryOptions struct {
	Projects Projects
	Store    verification.Store
	// Observed writes status.observedRedeliver.
	Observed func(ctx context.Context, mark string) error
	// Tell is called with the outcome of each redelivery, including refused ones, as text for the project's events. mark is what
	// Observed was called with.
	Tell func(project *verifyv1.VerificationProject, mark string, granted bool, message string)
	Log  logr.Logger
}

// RedeliveryController carries out redeliveries that the project's annotation requests. One runs for each term of a lease.
type RedeliveryController struct {
	RedeliveryOptions

	// handled is the last annotation that was carried out or refused. The watch may still bring the status of before.
	handled string
}

// NewRedeliveryController returns a controller that is not running yet.
func NewRedeliveryController(o RedeliveryOptions) *RedeliveryController {
	return &RedeliveryController{RedeliveryOptions: o}
}

// Run carries out each new annotation until ctx ends.
func (c *RedeliveryController) Run(ctx context.Context) error {
	changes, cancel := c.Projects.Observe()
	defer cancel()
	return controllers.Run(ctx, controllers.Options{
		Reconcile: func(ctx context.Context) (time.Duration, error) { return 0, c.reconcileOnce(ctx) },
		Failure:   "redelivery failed, will retry",
		Changes:   []<-chan struct{}{changes}, MinGap: redeliveryMinGap, Log: c.Log,
	})
}

// reconcileOnce carries out the annotation, if it is new.
func (c *RedeliveryController) reconcileOnce(ctx context.Context) error {
	project := c.Projects.Project()
	if project == nil {
		return nil
	}
	annotation := project.Annotations[verifyv1.RedeliverAnnotation]
	if annotation == "" || redeliveryMark(annotation) == project.Status.ObservedRedeliver || annotation == c.handled {
		return nil
	}
	granted, message := false, malformedRedelivery
	if id, ok := parseRedelivery(annotation); ok {
		var err error
		if granted, message, err = c.redeliverEvent(ctx, project, id, annotation); err != nil {
			return err
		}
	}
	mark := redeliveryMark(annotation)
	if err := c.Observed(ctx, mark); err != nil {
		return fmt.Errorf("record redelivery in project status: %w", err)
	}
	c.handled = annotation
	c.Tell(project, mark, granted, message)
	return nil
}

// redeliverEvent makes the event due, or returns why it is refused. Errors come from the store.
func (c *RedeliveryController) redeliverEvent(
	ctx context.Context, project *verifyv1.VerificationProject, id, annotation string,
) (granted bool, message string, err error) {
	if project.Spec.Webhook == nil {
		return false, "the project has no webhook, so there is nowhere to send an event", nil
	}
	wanted := settings.ConvertEvents(project.Spec.Webhook)
	_, err = c.Store.Update(ctx, id, func(r *verification.Request, now time.Time) error { return r.Redeliver(annotation, now, wanted) })
	return describeRedelivery(id, err)
}

// describeRedelivery turns the store's answer into a message. The message contains the id only if that is the id of a request,
// because otherwise it could be anything.
func describeRedelivery(id string, answer error) (granted bool, message string, err error) {
	switch {
	case answer == nil:
		return true, "the event of request " + id + " is sent once more", nil
	case errors.Is(answer, verification.ErrNoEvent):
		return false, "request " + id + " has no event to send: it is pending, or spec.webhook.events does not name its event", nil
	case errors.Is(answer, verification.ErrNotFound):
		return false, "no such request is stored, so its event cannot be sent again", nil
	case errors.Is(answer, verification.ErrContent):
		return false, "request " + id + " cannot be changed", nil
	default:
		return false, "", fmt.Errorf("make event due: %w", answer)
	}
}
