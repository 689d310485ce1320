package request

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/store/kubernetes"
	"github.com/phoneproof/phoneproof/internal/verification"
)

const (
	manualWorkers = 2

	// What waits for a failing store: it resumes within maxBackoff after the store does.
	manualMinBackoff = 200 * time.Millisecond
	manualMaxBackoff = 30 * time.Second
)

// ManualStore is what the controller needs of the Kubernetes store.
type ManualStore interface {
	ReadManual(ctx context.Context, name string) (kubernetes.ManualRequest, error)
	CompleteManual(ctx context.Context, name string, c kubernetes.Completion, limits verification.Limits) (verification.Request, error)
	RejectManual(ctx context.Context, name, reason, message string) error
}

// ManualOptions are what a Controller works with.
type ManualOptions struct {
	Store    ManualStore
	Project  verification.Project
	Settings func() *settings.Settings
	// Invite returns the link and the text that belong to a code.
	Invite func(*settings.Settings, verification.Method, verification.Code) (link, text string)
	// Clock tells the time; the real one if nil.
	Clock   clock.PassiveClock
	Metrics *ManualMetrics
	// Observer is notified of each verification that is started by completing a draft; nil for none.
	Observer verification.Observer
	Log      logr.Logger
}

// ManualController completes drafts. Make a new one for each term of a lease.
type ManualController struct {
	ManualOptions

	heldOff holdOff
}

// NewManualController returns a controller that has not begun.
func NewManualController(o ManualOptions) *ManualController {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &ManualController{ManualOptions: o}
}

// Run works on the names that the source hands in, until ctx ends.
func (c *ManualController) Run(ctx context.Context, from source.TypedSource[string]) error {
	loop, err := controller.NewTypedUnmanaged("draft", controller.TypedOptions[string]{
		Reconciler:              c,
		MaxConcurrentReconciles: manualWorkers,
		SkipNameValidation:      new(true), // the name comes again with each term
		RecoverPanic:            new(true),
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[string](manualMinBackoff, manualMaxBackoff),
		Logger:                  c.Log,
	})
	if err != nil {
		return fmt.Errorf("make the draft controller: %w", err)
	}
	if err := loop.Watch(from); err != nil {
		return fmt.Errorf("start the source of drafts: %w", err)
	}
	return loop.Start(ctx)
}

// Reconcile completes a draft, or says why it cannot be.
func (c *ManualController) Reconcile(ctx context.Context, name string) (reconcile.Result, error) {
	if rest := c.heldOff.remaining(name, c.Clock.Now()); rest > 0 {
		return reconcile.Result{RequeueAfter: rest}, nil
	}
	err := c.complete(ctx, name)
	if refused := asManualRefusal(err); refused != nil {
		return c.reject(ctx, name, refused)
	}
	if errors.Is(err, verification.ErrNotFound) { // deleted, or completed by now
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, err
}

// complete makes the draft a request, unless it returns why it is refused or what failed.
func (c *ManualController) complete(ctx context.Context, name string) error {
	draft, err := c.Store.ReadManual(ctx, name)
	if err != nil {
		return fmt.Errorf("read draft %s: %w", name, err)
	}
	current := c.Settings()
	if err := checkSettings(draft, current); err != nil {
		return err
	}
	code, err := c.Project.NewCode(rand.Reader)
	if err != nil {
		return fmt.Errorf("complete draft %s: %w", name, err)
	}
	link, text := c.Invite(current, draft.Method, code)
	_, err = c.Store.CompleteManual(ctx, name, kubernetes.Completion{
		CodeID: c.Project.RequestID(code), Text: text, Link: link, TTL: current.TTL, DisplayName: current.DisplayName,
	}, current.Limits)
	switch {
	case errors.Is(err, verification.ErrContent):
		c.heldOff.hold(name, c.Clock.Now(), contentRecheck)
	case err != nil && asManualRefusal(err) == nil:
		c.heldOff.hold(name, c.Clock.Now(), failureRecheck)
	}
	if err != nil {
		return fmt.Errorf("complete draft %s: %w", name, err)
	}
	if c.Observer != nil {
		c.Observer.Started(draft.Method)
	}
	c.Log.Info("completed a request made by hand", "request", name)
	return nil
}

// reject says in the draft's status why it is refused.
func (c *ManualController) reject(ctx context.Context, name string, refused *manualRefusalError) (reconcile.Result, error) {
	err := c.Store.RejectManual(ctx, name, refused.reason, refused.message)
	switch {
	case errors.Is(err, verification.ErrContent):
		c.Metrics.skipped()
		c.Log.Error(err, "left a request alone: its condition cannot be written either", "request", name)
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("reject draft %s: %w", name, err)
	default:
		c.Metrics.refused(refused.reason)
		return reconcile.Result{RequeueAfter: refused.recheck}, nil
	}
}
