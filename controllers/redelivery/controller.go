// Package redelivery carries out the annotation phoneproof.dev/redeliver: REQUESTID/NONCE on a project, which sends the
// event of a verified request once more. What was carried out is stored with the request, in the same write that makes the
// event due, and with the project, so no restart and no second leader does it again.
package redelivery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
)

const (
	// maxWish bounds the annotation's value; the schema bounds what the status can hold of it.
	maxWish = 512
	// minGap is the least time between two redeliveries of a project: an annotation in a loop must not become a flood.
	minGap = time.Second
)

// Projects is where the project's object comes from; see settings.Object.
type Projects interface {
	Project() *verifyv1.VerificationProject
	Observe() (changes <-chan struct{}, cancel func())
}

// Options are what a Controller works with.
type Options struct {
	Projects Projects
	Store    verification.Store
	// Observed writes status.observedRedeliver.
	Observed func(ctx context.Context, wish string) error
	// Tell is told the outcome in words for the project's events: refused wishes too.
	Tell func(project *verifyv1.VerificationProject, granted bool, message string)
	Log  logr.Logger
}

// Controller carries out wishes for redelivery.
type Controller struct{ Options }

// New returns a controller that has not begun.
func New(o Options) *Controller { return &Controller{o} }

// Run carries out the wish of each new annotation until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	changes, cancel := c.Projects.Observe()
	defer cancel()
	backoff := wait.Backoff{Duration: minGap, Factor: 2, Jitter: 0.1, Steps: 6, Cap: time.Minute}
	retry := backoff
	for ctx.Err() == nil {
		if err := c.reconcile(ctx); err != nil {
			c.Log.Error(err, "redelivery waits")
			sleep(ctx, retry.Step())
			continue
		}
		retry = backoff
		select {
		case <-changes:
			sleep(ctx, minGap)
		case <-ctx.Done():
		}
	}
	return nil
}

// reconcile carries out the annotation's wish, if it is a new one.
func (c *Controller) reconcile(ctx context.Context) error {
	project := c.Projects.Project()
	if project == nil {
		return nil
	}
	wish := project.Annotations[verifyv1.RedeliverAnnotation]
	if wish == "" || wish == project.Status.ObservedRedeliver {
		return nil
	}
	granted, message, err := c.carryOut(ctx, wish)
	if err != nil {
		return err
	}
	if len(wish) > maxWish { // it fits in no status: it is refused anew by every leader, and that once
		wish = wish[:maxWish]
		if wish == project.Status.ObservedRedeliver {
			return nil
		}
	}
	if err := c.Observed(ctx, wish); err != nil {
		return fmt.Errorf("note the redelivery in the project's status: %w", err)
	}
	c.Tell(project, granted, message)
	return nil
}

// carryOut makes the event due. An error is the store's.
func (c *Controller) carryOut(ctx context.Context, wish string) (granted bool, message string, err error) {
	id, nonce, ok := strings.Cut(wish, "/")
	if !ok || id == "" || nonce == "" || len(wish) > maxWish {
		return false, "the annotation " + verifyv1.RedeliverAnnotation + " must be REQUESTID/NONCE, at most 512 characters", nil
	}
	_, err = c.Store.Update(ctx, id, func(r *verification.Request, now time.Time) error { return r.Redeliver(wish, now) })
	switch {
	case err == nil:
		return true, "the event of request " + id + " is sent once more", nil
	case errors.Is(err, verification.ErrNotFound):
		return false, "no request " + id + " is stored, so its event cannot be sent again", nil
	case errors.Is(err, verification.ErrNotVerified):
		return false, "request " + id + " is not verified, so there is no event to send", nil
	case errors.Is(err, verification.ErrContent):
		return false, "request " + id + " cannot be changed", nil
	default:
		return false, "", fmt.Errorf("redeliver: %w", err)
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
