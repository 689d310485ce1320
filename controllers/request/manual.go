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

	// Bounds of the retry delay while the store fails: work resumes within manualMaxBackoff after the store does.
	manualMinBackoff = 200 * time.Millisecond
	manualMaxBackoff = 30 * time.Second
)

// ManualStore is what the controller needs of the Kubernetes store.
type ManualStore interface {
	ReadManual(ctx context.Context, name string) (kubernetes.ManualRequest, error)
	CompleteManual(ctx context.Context, name string, c kubernetes.Completion, limits verification.Limits) (verification.Request, error)
	RejectManual(ctx context.Context, name, reason, message string) error
}

// ManualOptions configure a ManualController.
type ManualOptions struct {
	Store    ManualStore
	Project  verification.CodeSpace
	Settings func() *settings.Settings
	// Invite returns the link and the text for the code of a request.
	Invite func(*settings.Settings, *verification.Request, verification.Code) (link, text string)
	// Clock is the time source; the real one if nil.
	Clock   clock.PassiveClock
	Metrics *ManualMetrics
	// Observer is notified of each verification that starts when a manual request is completed; nil for none.
	Observer verification.Observer
	Log      logr.Logger
}

// ManualController completes manual requests. One runs for each term of a lease.
type ManualController struct {
	ManualOptions

	heldOff holdOff
}

// NewManualController returns a controller that is not running yet.
func NewManualController(o ManualOptions) *ManualController {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &ManualController{ManualOptions: o}
}

// Run works on the names of the source until ctx ends.
func (c *ManualController) Run(ctx context.Context, from source.TypedSource[string]) error {
	loop, err := controller.NewTypedUnmanaged("draft", controller.TypedOptions[string]{
		Reconciler:              c,
		MaxConcurrentReconciles: manualWorkers,
		SkipNameValidation:      new(true), // the name repeats with each term
		RecoverPanic:            new(true),
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[string](manualMinBackoff, manualMaxBackoff),
		Logger:                  c.Log,
	})
	if err != nil {
		return fmt.Errorf("create manual request controller: %w", err)
	}
	if err := loop.Watch(from); err != nil {
		return fmt.Errorf("watch manual request source: %w", err)
	}
	if err := loop.Start(ctx); err != nil {
		return fmt.Errorf("run manual request controller: %w", err)
	}
	return nil
}

// Reconcile completes a manual request, or records in its status why it is refused.
func (c *ManualController) Reconcile(ctx context.Context, name string) (reconcile.Result, error) {
	if rest := c.heldOff.remaining(name, c.Clock.Now()); rest > 0 {
		return reconcile.Result{RequeueAfter: rest}, nil
	}
	err := c.completeRequest(ctx, name)
	if refused := asManualRefusal(err); refused != nil {
		return c.rejectRequest(ctx, name, refused)
	}
	if err == nil || errors.Is(err, verification.ErrNotFound) { // completed, by now or before, or deleted
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, fmt.Errorf("complete manual request %s: %w", name, err)
}

// completeRequest completes the manual request. The error is the reason for a refusal, or a failure.
func (c *ManualController) completeRequest(ctx context.Context, name string) error {
	manual, err := c.Store.ReadManual(ctx, name)
	if err != nil {
		return fmt.Errorf("read manual request %s: %w", name, err)
	}
	current := c.Settings()
	if err := checkSettings(manual, current); err != nil {
		return err
	}
	code, err := c.Project.NewCode(rand.Reader)
	if err != nil {
		return fmt.Errorf("complete manual request %s: %w", name, err)
	}
	link, text := c.Invite(current, &verification.Request{
		Method: manual.Method, DisplayName: current.DisplayName, ClientData: verification.ClientData{Locale: manual.Locale},
	}, code)
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
		return fmt.Errorf("complete manual request %s: %w", name, err)
	}
	if c.Observer != nil {
		c.Observer.Started(manual.Method)
	}
	c.Log.Info("manual request completed", "request", name)
	return nil
}

// rejectRequest records in the manual request's status why it is refused.
func (c *ManualController) rejectRequest(ctx context.Context, name string, refused *manualRefusalError) (reconcile.Result, error) {
	err := c.Store.RejectManual(ctx, name, refused.reason, refused.message)
	switch {
	case errors.Is(err, verification.ErrContent):
		c.Metrics.countSkip()
		c.Log.Error(err, "manual request skipped: its condition cannot be written", "request", name)
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("reject manual request %s: %w", name, err)
	default:
		c.Metrics.countRefusal(refused.reason)
		return reconcile.Result{RequeueAfter: refused.recheck}, nil
	}
}
