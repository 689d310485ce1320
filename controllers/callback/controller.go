package callback

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// Projects provides the project's object; see object in internal/server.
type Projects interface {
	Project() *verifyv1.VerificationProject
	Observe() (changes <-chan struct{}, cancel func())
}

// Options configure a Controller.
type Options struct {
	// Settings returns the current settings; never nil. Changes subscribes to their changes; see settings.Live.
	Settings func() *settings.Settings
	Changes  func() (changes <-chan struct{}, cancel func())
	// Projects provides the object whose status stores the last callback; nil without a cluster, where nothing is stored.
	Projects Projects
	// Remember writes the last registered callback to the status; empty for none. Nil without a cluster.
	Remember func(ctx context.Context, callback string) error
	// Set and Withdraw update the condition; see projectstatus.Board. If nil, the condition is only logged.
	Set      func(metav1.Condition)
	Withdraw func(conditionType string)
	// Clock is the time source; the real one if nil.
	Clock clock.Clock
	Log   logr.Logger
}

// currentProject returns the project's object; nil if there is none.
func (o *Options) currentProject() *verifyv1.VerificationProject {
	if o.Projects == nil {
		return nil
	}
	return o.Projects.Project()
}

// setCondition sets a condition of the project to a verdict, and logs a change. last is the condition that was set before.
func (o *Options) setCondition(last *metav1.Condition, conditionType string, s *settings.Settings, v verdict) {
	if last.Status != v.status || last.Reason != v.reason || last.Message != v.message {
		o.Log.Info("condition changed", "condition", conditionType, "status", v.status, "reason", v.reason, "message", v.message)
	}
	*last = v.toCondition(conditionType, s)
	if o.Set != nil {
		o.Set(*last)
	}
}

func (o *Options) withdrawCondition(conditionType string) {
	if o.Withdraw != nil {
		o.Withdraw(conditionType)
	}
}

// messenger holds what differs between the platforms.
type messenger interface {
	// conditionType returns the type of the condition that the controller sets.
	conditionType() string
	// newPlan returns what the settings want.
	newPlan(s *settings.Settings) plan
	// storedCallback returns the callback in a status.
	storedCallback(status *verifyv1.VerificationProjectStatus) string
	// readState reads an account at the platform; registerCallback and removeCallback change its callback. All get settings whose
	// plan needs the platform.
	readState(ctx context.Context, s *settings.Settings) (platformState, error)
	registerCallback(ctx context.Context, s *settings.Settings, callback string) error
	removeCallback(ctx context.Context, s *settings.Settings) error
	// readSubscription reads whether the account's messages are delivered to our app, and subscribeApp makes it so.
	readSubscription(ctx context.Context, s *settings.Settings) subscription
	subscribeApp(ctx context.Context, s *settings.Settings) error
	// explainError describes an error of the calls above for the project's owner.
	explainError(err error, doing step) callFailure
	// requestedWait returns how long the platform asks to wait; zero if it does not.
	requestedWait(err error) time.Duration
	// pollFor allows polling for updates with these settings, or stops it if they are nil. It returns the verdict on polling and
	// the longest time until the next check.
	pollFor(s *settings.Settings) (verdict, time.Duration)
	// pollChanges gets a value when the verdict on polling has changed; nil if the platform has no polling.
	pollChanges() <-chan struct{}
	// pollVersion differs after each change of the verdict on polling.
	pollVersion() int
}

// Controller keeps a project's callback registered with one platform. One runs for each term of a lease.
type Controller struct {
	Options

	messenger messenger

	memory       memory
	subscription subscriptionMemory
	current      *registration // our callback, as known in this term
	obsolete     *registration // one that is to be removed
	condition    metav1.Condition
	failures     int       // in a row
	last         step      // of the last check
	notBefore    time.Time // the platform is not called earlier
	// What the last check saw, and when the next is due even if nothing changes; zero for never.
	checkedAt       time.Time
	checkedSettings *settings.Settings
	checkedPoll     int
	projectDeleted  bool
	dueAt           time.Time
}

// registration is a callback of ours at an account, with the settings that reach the account.
type registration struct {
	settings *settings.Settings
	account  string
	callback string
	tries    int
}

func newController(o Options, m messenger) *Controller {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Controller{Options: o, messenger: m}
}

// reconcileOnce checks once, and returns when to check again; zero if only a change can make a difference.
func (c *Controller) reconcileOnce(ctx context.Context) time.Duration {
	s := c.Settings()
	c.checkedAt, c.checkedSettings, c.checkedPoll = c.Clock.Now(), s, c.messenger.pollVersion()
	p := c.messenger.newPlan(s)
	c.projectDeleted = c.isProjectDeleted()
	p.absent = p.absent || c.projectDeleted
	if c.current != nil && (p.absent || p.account != "" && p.account != c.current.account) {
		c.current, c.obsolete, c.memory = nil, c.current, memory{}
	}
	farewell := c.removeObsolete(ctx, p)
	return earlierWait(farewell, c.keepRegistered(ctx, s, p))
}

// keepRegistered takes care of the callback that the settings want.
func (c *Controller) keepRegistered(ctx context.Context, s *settings.Settings, p plan) time.Duration {
	switch {
	case p.absent:
		c.messenger.pollFor(nil)
		c.withdrawCondition()
		return 0
	case p.verdict != verdict{}:
		c.messenger.pollFor(nil)
		if p.byHand {
			c.current = nil // it is the user's now, so it is never removed
		}
		c.failures = 0
		c.setCondition(s, p.verdict)
		return 0
	}
	if wait := c.notBefore.Sub(c.checkedAt); wait > 0 && !p.byHand {
		return wait
	}
	wait, err := c.checkPlatform(ctx, s, p)
	if err != nil {
		return c.handleFailure(ctx, s, err)
	}
	return wait
}

// stepError is a failed call and its step.
type stepError struct {
	error

	doing step
}

func (e stepError) Unwrap() error { return e.error }

// checkPlatform reads the platform, takes the step that is needed, and sets the condition.
func (c *Controller) checkPlatform(ctx context.Context, s *settings.Settings, p plan) (time.Duration, error) {
	var found platformState
	var err error
	if !p.byHand {
		if found, err = c.messenger.readState(ctx, s); err != nil {
			return 0, stepError{fmt.Errorf("read platform state: %w", err), stepNone}
		}
	}
	do, says := decideStep(p, found, c.earlierCallbacks())
	// Whether the callback is ours depends on the number alone, not on its business account.
	ours := says.reason != verifyv1.ReasonCallbackTaken && says.reason != verifyv1.ReasonAccountMismatch
	var recheck time.Duration
	if says.status == metav1.ConditionTrue {
		var subscribed subscription
		if subscribed, recheck = c.checkSubscription(ctx, s, p); ctx.Err() != nil {
			return 0, fmt.Errorf("read subscription: %w", ctx.Err())
		}
		do, says = decideSubscription(p, subscribed, do, says)
	}
	if err := c.takeStep(ctx, s, p, do); err != nil {
		return 0, stepError{err, do}
	}
	again := earlierWait(recheck, c.recordState(s, p, do, says, ours))
	if ours && !p.byHand {
		err = c.saveCallback(ctx, p.callback)
	}
	return again, err
}

func (c *Controller) takeStep(ctx context.Context, s *settings.Settings, p plan, do step) error {
	switch do {
	case stepNone:
	case stepRegister:
		if err := c.messenger.registerCallback(ctx, s, p.callback); err != nil {
			return fmt.Errorf("register callback: %w", err)
		}
		c.Log.Info("callback registered")
	case stepRemove:
		if err := c.messenger.removeCallback(ctx, s); err != nil {
			return fmt.Errorf("remove callback: %w", err)
		}
		c.Log.Info("callback removed, updates are polled from now on")
	case stepSubscribe:
		c.rememberRegistration(s, p) // it stands, whatever comes of the subscription
		if err := c.messenger.subscribeApp(ctx, s); err != nil {
			return fmt.Errorf("subscribe app: %w", err)
		}
		c.Log.Info("app subscribed")
	}
	return nil
}

// recordState keeps the state that the platform has now, sets the condition, and returns when to check again. ours is false if the
// callback is another's.
func (c *Controller) recordState(s *settings.Settings, p plan, do step, says verdict, ours bool) time.Duration {
	again := controllers.Jitter(checkInterval)
	if do != stepNone && do != c.last {
		again = recheckDelay
	}
	c.last = do
	switch {
	case p.byHand:
		c.messenger.pollFor(nil)
		c.current = nil // it is the user's, so it is never removed
	case says == verdict{}:
		c.current, c.memory = nil, memory{}
		var recheck time.Duration
		says, recheck = c.messenger.pollFor(s)
		again = earlierWait(again, recheck)
	case !ours:
		c.messenger.pollFor(nil)
		c.current, c.memory = nil, memory{}
	default:
		c.messenger.pollFor(nil)
		c.rememberRegistration(s, p)
	}
	c.setCondition(s, says)
	if says.status == metav1.ConditionTrue {
		c.failures = 0
		return again
	}
	c.failures++
	return earlierWait(again, retryAfter(c.failures))
}

// rememberRegistration records that the callback of the plan is registered.
func (c *Controller) rememberRegistration(s *settings.Settings, p plan) {
	c.current = &registration{settings: s, account: p.account, callback: p.callback}
	c.memory = memory{callbacks: []string{p.callback}, secret: p.secret}
}

// handleFailure sets the condition, unless the failure may be temporary, and returns when to retry.
func (c *Controller) handleFailure(ctx context.Context, s *settings.Settings, err error) time.Duration {
	if ctx.Err() != nil {
		return 0
	}
	c.failures++
	wait := retryAfter(c.failures)
	if asked := c.messenger.requestedWait(err); asked > 0 {
		wait = max(wait, asked)
		c.notBefore = c.Clock.Now().Add(asked)
	}
	failure, ok := errors.AsType[stepError](err)
	if !ok { // an error of the API server: the condition is already set
		c.Log.Error(err, "status update failed, will retry")
		return wait
	}
	t := c.messenger.explainError(failure.error, failure.doing)
	switch {
	case !t.temporary, c.failures >= patience:
		c.setCondition(s, t.toVerdict())
	case c.hasNoCondition():
		c.setCondition(s, registering)
	}
	c.Log.V(1).Info("platform check failed, will retry", "cause", err.Error(), "after", wait.String())
	return wait
}

// removeObsolete removes a callback that is no longer wanted, if it is still ours.
func (c *Controller) removeObsolete(ctx context.Context, p plan) time.Duration {
	t := c.obsolete
	if t == nil {
		return 0
	}
	found, err := c.messenger.readState(ctx, t.settings)
	if err == nil && found.mismatch == "" && found.callback == t.callback {
		if err = c.messenger.removeCallback(ctx, t.settings); err == nil {
			c.Log.Info("callback removed, the project no longer uses the messenger")
		}
	}
	if err != nil {
		t.tries++
		if c.messenger.explainError(err, stepRemove).temporary && t.tries < maxRemovals && ctx.Err() == nil {
			return max(retryAfter(t.tries), c.messenger.requestedWait(err))
		}
		c.Log.Info("callback removal failed, callback stays registered", "cause", err.Error())
	}
	c.obsolete = nil
	if p.absent && !c.projectDeleted {
		if err := c.saveCallback(ctx, ""); err != nil {
			c.Log.Error(err, "status update failed, a removed callback is still listed")
		}
	}
	return 0
}

// earlierCallbacks returns the callbacks that were registered earlier, in this term or by the status.
func (c *Controller) earlierCallbacks() memory {
	m := c.memory
	if project := c.currentProject(); project != nil {
		if callback := c.messenger.storedCallback(&project.Status); callback != "" {
			m.callbacks = append([]string{callback}, m.callbacks...)
		}
	}
	return m
}

// saveCallback writes the callback to the status, if it differs.
func (c *Controller) saveCallback(ctx context.Context, callback string) error {
	project := c.currentProject()
	if c.Remember == nil || project == nil || c.messenger.storedCallback(&project.Status) == callback {
		return nil
	}
	if err := c.Remember(ctx, callback); err != nil {
		return fmt.Errorf("store callback in project status: %w", err)
	}
	return nil
}

// isProjectDeleted reports whether the project's object is gone. The settings outlive it.
func (c *Controller) isProjectDeleted() bool { return c.Projects != nil && c.Projects.Project() == nil }

// hasNoCondition reports whether the condition was never set, in this term or before.
func (c *Controller) hasNoCondition() bool {
	if c.condition.Type != "" {
		return false
	}
	project := c.currentProject()
	return project == nil || meta.FindStatusCondition(project.Status.Conditions, c.messenger.conditionType()) == nil
}

func (c *Controller) setCondition(s *settings.Settings, v verdict) {
	c.Options.setCondition(&c.condition, c.messenger.conditionType(), s, v)
}

func (c *Controller) withdrawCondition() {
	c.condition, c.failures = metav1.Condition{}, 0
	c.Options.withdrawCondition(c.messenger.conditionType())
}

// earlierWait returns the shorter wait; zero is none.
func earlierWait(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
