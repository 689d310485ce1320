// Package draft completes VerificationRequests that were made with kubectl or by other controllers: they name a project,
// a number and a method, and get what the API gives its clients: a code, the text with it, the link, and an end. A draft
// that cannot be completed is told why by the condition Accepted.
package draft

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/store/kubernetes"
	"github.com/phoneproof/phoneproof/internal/verification"
)

const (
	workers    = 2
	minBackoff = 200 * time.Millisecond
	maxBackoff = 5 * time.Minute
	// channelRecheck is how often a draft asks whether its messenger's secrets can be read by now.
	channelRecheck = 30 * time.Second
)

// Store is what the controller needs of the Kubernetes store.
type Store interface {
	Draft(ctx context.Context, name string) (kubernetes.Draft, error)
	Complete(ctx context.Context, name string, c kubernetes.Completion, limits verification.Limits) (verification.Request, error)
	Reject(ctx context.Context, name, reason, message string) error
}

// Options are what a Controller works with.
type Options struct {
	Store    Store
	Project  verification.Project
	Settings func() *settings.Settings
	// Invite returns the link and the text that belong to a code.
	Invite func(*settings.Settings, verification.Method, verification.Code) (link, text string)
	Log    logr.Logger
}

// Controller completes drafts. Make a new one for each term of a lease.
type Controller struct{ Options }

// New returns a controller that has not begun.
func New(o Options) *Controller { return &Controller{o} }

// Run works on the names that the source hands in, until ctx ends.
func (c *Controller) Run(ctx context.Context, from source.TypedSource[string]) error {
	loop, err := controller.NewTypedUnmanaged("draft", controller.TypedOptions[string]{
		Reconciler:              c,
		MaxConcurrentReconciles: workers,
		SkipNameValidation:      new(true), // the name comes again with each term
		RecoverPanic:            new(true),
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[string](minBackoff, maxBackoff),
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
func (c *Controller) Reconcile(ctx context.Context, name string) (reconcile.Result, error) {
	draft, err := c.Store.Draft(ctx, name)
	switch {
	case errors.Is(err, verification.ErrNotFound):
		return reconcile.Result{}, nil
	case errors.Is(err, verification.ErrContent):
		return reconcile.Result{}, c.reject(ctx, name, verifyv1.ReasonMalformed,
			"the object's content makes no sense, so it is skipped; delete it")
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("draft %s: %w", name, err)
	}
	current := c.Settings()
	if reason, message, wait := refusal(draft, current); reason != "" {
		return reconcile.Result{RequeueAfter: wait}, c.reject(ctx, name, reason, message)
	}
	return c.complete(ctx, draft, current)
}

// refusal says why a draft cannot be completed, and when to ask again if that may change; empty if it can.
func refusal(d kubernetes.Draft, s *settings.Settings) (reason, message string, wait time.Duration) {
	if _, err := phone.Parse(d.Phone.E164()); err != nil {
		return verifyv1.ReasonPhoneNumberRefused, "spec.phoneNumber: " + err.Error(), 0
	}
	switch s.Method(d.Method) {
	case settings.MethodNotConfigured:
		return verifyv1.ReasonMethodNotConfigured,
			"the project has no account for spec.method; use the other one, or add the account", channelRecheck
	case settings.MethodNotReady:
		return verifyv1.ReasonSecretsNotReady,
			"the secrets of the account for spec.method cannot be read yet; see the project's conditions", channelRecheck
	default:
		return "", "", 0
	}
}

func (c *Controller) complete(ctx context.Context, d kubernetes.Draft, s *settings.Settings) (reconcile.Result, error) {
	code, err := c.Project.NewCode(rand.Reader)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("draft %s: %w", d.Name, err)
	}
	link, text := c.Invite(s, d.Method, code)
	_, err = c.Store.Complete(ctx, d.Name, kubernetes.Completion{
		CodeID: c.Project.RequestID(code), Text: text, Link: link, TTL: s.TTL,
	}, s.Limits)
	known, _ := errors.AsType[*verification.Error](err)
	switch {
	case err == nil:
		c.Log.Info("completed a request made by hand", "request", d.Name)
		return reconcile.Result{}, nil
	case known != nil && known.Code == verification.CodeRateLimited:
		return reconcile.Result{RequeueAfter: known.RetryAfter}, c.reject(ctx, d.Name, verifyv1.ReasonRateLimited, known.Message)
	case known != nil && known.Code == verification.CodeTooManyStored:
		return reconcile.Result{RequeueAfter: known.RetryAfter}, c.reject(ctx, d.Name, verifyv1.ReasonTooManyStored, known.Message)
	case errors.Is(err, verification.ErrNotFound):
		return reconcile.Result{}, nil
	default:
		return reconcile.Result{}, fmt.Errorf("complete draft %s: %w", d.Name, err)
	}
}

func (c *Controller) reject(ctx context.Context, name, reason, message string) error {
	err := c.Store.Reject(ctx, name, reason, message)
	if errors.Is(err, verification.ErrContent) {
		c.Log.Error(err, "left a request alone: its condition cannot be written either", "request", name)
		return nil
	}
	if err != nil {
		return fmt.Errorf("reject draft %s: %w", name, err)
	}
	return nil
}
