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
	"github.com/phoneproof/phoneproof/internal/settings"
)

// Projects is where the project's object comes from; see settings.Object.
type Projects interface {
	Project() *verifyv1.VerificationProject
	Observe() (changes <-chan struct{}, cancel func())
}

// Options are what a Controller works with.
type Options struct {
	// Settings returns the current settings; never nil. Changes subscribes to their changes; see settings.Live.
	Settings func() *settings.Settings
	Changes  func() (changes <-chan struct{}, cancel func())
	// Projects is where the object comes from whose status remembers; nil without a cluster, where nothing does.
	Projects Projects
	// Remember writes the callback that was registered last into the status; empty for none. Nil without a cluster.
	Remember func(ctx context.Context, callback string) error
	// Set and Withdraw tell the condition; see report.Board. Nil where nobody wants to know: then it is only logged.
	Set      func(metav1.Condition)
	Withdraw func(conditionType string)
	// Clock tells the time; the real one if nil.
	Clock clock.Clock
	Log   logr.Logger
}

// messenger is what differs from platform to platform.
type messenger interface {
	// condition is the type of the condition that is told.
	condition() string
	// plan says what the settings want.
	plan(s *settings.Settings) plan
	// remembered returns the callback in a status.
	remembered(status *verifyv1.VerificationProjectStatus) string
	// observe asks the platform for an account, register and remove change what it said. All are told settings that
	// plan wanted to be asked about.
	observe(ctx context.Context, s *settings.Settings) (seen, error)
	register(ctx context.Context, s *settings.Settings, callback string) error
	remove(ctx context.Context, s *settings.Settings) error
	// explain puts an error of the calls above into words.
	explain(err error, doing step) trouble
	// waits returns how long the platform asks to wait; zero if it does not.
	waits(err error) time.Duration
	// fetch lets updates be fetched for these settings, or for none if nil, and tells how that goes and when to look
	// again at the latest.
	fetch(s *settings.Settings) (verdict, time.Duration)
	// news gets a value when how that goes has changed; nil where nothing is fetched.
	news() <-chan struct{}
}

// Controller keeps a project's callback registered with one platform. Make a new one for each term of a lease.
type Controller struct {
	Options

	messenger messenger

	memory   memory
	here     *tenancy // our callback, as this term knows it
	leaving  *tenancy // one that is not wanted any more
	said     metav1.Condition
	failures int       // in a row
	acted    bool      // the last look changed something
	notUntil time.Time // the platform is not asked before
	looked   time.Time
	gone     bool // the project was deleted
}

// tenancy is a callback of ours at an account, with the settings that lead there.
type tenancy struct {
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

// reconcile looks once, and returns when to look again; zero if only a change makes a difference.
func (c *Controller) reconcile(ctx context.Context) time.Duration {
	c.looked = c.Clock.Now()
	s := c.Settings()
	p := c.messenger.plan(s)
	c.gone = c.deleted()
	p.absent = p.absent || c.gone
	if c.here != nil && (p.absent || p.account != "" && p.account != c.here.account) {
		c.here, c.leaving, c.memory = nil, c.here, memory{}
	}
	farewell := c.leave(ctx, p)
	return earliest(farewell, c.stay(ctx, s, p))
}

// stay sees to the callback that is wanted.
func (c *Controller) stay(ctx context.Context, s *settings.Settings, p plan) time.Duration {
	switch {
	case p.absent:
		c.messenger.fetch(nil)
		c.withdraw()
		return 0
	case p.said != verdict{}:
		c.messenger.fetch(nil)
		if p.said.reason == verifyv1.ReasonRegistrationByHand {
			c.here = nil // it is not ours to remove any more
		}
		c.failures = 0
		c.say(s, p.said)
		return 0
	}
	if wait := c.notUntil.Sub(c.looked); wait > 0 {
		return wait
	}
	wait, err := c.look(ctx, s, p)
	if err != nil {
		return c.failed(ctx, s, err)
	}
	return wait
}

// stepError is a call that failed, and what it was for.
type stepError struct {
	error

	doing step
}

func (e stepError) Unwrap() error { return e.error }

// look asks the platform, does what is to be done, and says how it stands.
func (c *Controller) look(ctx context.Context, s *settings.Settings, p plan) (time.Duration, error) {
	found, err := c.messenger.observe(ctx, s)
	if err != nil {
		return 0, stepError{err, stepNone}
	}
	do, says := decide(p, found, c.known())
	switch do {
	case stepNone:
	case stepRegister:
		if err := c.messenger.register(ctx, s, p.callback); err != nil {
			return 0, stepError{err, do}
		}
		c.Log.Info("registered our callback")
	case stepRemove:
		if err := c.messenger.remove(ctx, s); err != nil {
			return 0, stepError{err, do}
		}
		c.Log.Info("removed our callback: updates are fetched from now on")
	}
	again := c.settle(s, p, do, says)
	if stands := says.reason != verifyv1.ReasonCallbackTaken && says.reason != verifyv1.ReasonAccountMismatch; stands {
		err = c.remember(ctx, p.callback)
	}
	return again, err
}

// settle notes what stands at the platform now, says it, and returns when to look again.
func (c *Controller) settle(s *settings.Settings, p plan, do step, says verdict) time.Duration {
	again := jittered(steadyEvery)
	if do != stepNone && !c.acted {
		again = soonAfter
	}
	c.acted = do != stepNone
	switch {
	case says == verdict{}:
		c.here, c.memory = nil, memory{}
		var recheck time.Duration
		says, recheck = c.messenger.fetch(s)
		again = earliest(again, recheck)
	case says.reason == verifyv1.ReasonCallbackTaken, says.reason == verifyv1.ReasonAccountMismatch:
		c.messenger.fetch(nil)
		c.here, c.memory = nil, memory{}
	default:
		c.messenger.fetch(nil)
		c.here = &tenancy{settings: s, account: p.account, callback: p.callback}
		c.memory = memory{callbacks: []string{p.callback}, secret: p.secret}
	}
	c.say(s, says)
	if says.status == metav1.ConditionTrue {
		c.failures = 0
		return again
	}
	c.failures++
	return earliest(again, retryAfter(c.failures))
}

// failed says what went wrong, unless it may pass by itself, and returns when to try again.
func (c *Controller) failed(ctx context.Context, s *settings.Settings, err error) time.Duration {
	if ctx.Err() != nil {
		return 0
	}
	c.failures++
	wait := retryAfter(c.failures)
	if asked := c.messenger.waits(err); asked > 0 {
		wait = max(wait, asked)
		c.notUntil = c.Clock.Now().Add(asked)
	}
	failure, ok := errors.AsType[stepError](err)
	if !ok { // the API server's: what was to be said is said
		c.Log.Error(err, "our callback is not noted in the project's status yet")
		return wait
	}
	t := c.messenger.explain(failure.error, failure.doing)
	switch {
	case !t.temporary, c.failures >= patience:
		c.say(s, t.verdict())
	case c.untold():
		c.say(s, verdict{metav1.ConditionUnknown, verifyv1.ReasonRegistering, "the messenger's platform is being asked"})
	}
	c.Log.V(1).Info("the messenger's platform is asked again", "cause", err.Error(), "after", wait.String())
	return wait
}

// leave removes a callback that is not wanted any more, if it is still ours.
func (c *Controller) leave(ctx context.Context, p plan) time.Duration {
	t := c.leaving
	if t == nil {
		return 0
	}
	found, err := c.messenger.observe(ctx, t.settings)
	if err == nil && found.mismatch == "" && found.callback == t.callback {
		if err = c.messenger.remove(ctx, t.settings); err == nil {
			c.Log.Info("removed our callback: the messenger is not part of the project any more")
		}
	}
	if err != nil {
		t.tries++
		if c.messenger.explain(err, stepRemove).temporary && t.tries < maxFarewells && ctx.Err() == nil {
			return max(retryAfter(t.tries), c.messenger.waits(err))
		}
		c.Log.Info("our callback stays registered: the platform does not let us remove it", "cause", err.Error())
	}
	c.leaving = nil
	if p.absent && !c.gone {
		if err := c.remember(ctx, ""); err != nil {
			c.Log.Error(err, "a callback that is gone is still noted in the project's status")
		}
	}
	return 0
}

// known returns what is known of earlier registrations.
func (c *Controller) known() memory {
	m := c.memory
	if project := c.project(); project != nil {
		if callback := c.messenger.remembered(&project.Status); callback != "" {
			m.callbacks = append([]string{callback}, m.callbacks...)
		}
	}
	return m
}

// remember notes the callback in the status, if it is another one.
func (c *Controller) remember(ctx context.Context, callback string) error {
	project := c.project()
	if c.Remember == nil || project == nil || c.messenger.remembered(&project.Status) == callback {
		return nil
	}
	if err := c.Remember(ctx, callback); err != nil {
		return fmt.Errorf("note the callback in the project's status: %w", err)
	}
	return nil
}

func (c *Controller) project() *verifyv1.VerificationProject {
	if c.Projects == nil {
		return nil
	}
	return c.Projects.Project()
}

// deleted tells whether there was an object and is none any more: settings outlive it.
func (c *Controller) deleted() bool { return c.Projects != nil && c.Projects.Project() == nil }

// untold tells whether nobody has said anything yet, in this term or before.
func (c *Controller) untold() bool {
	if c.said.Type != "" {
		return false
	}
	project := c.project()
	return project == nil || meta.FindStatusCondition(project.Status.Conditions, c.messenger.condition()) == nil
}

func (c *Controller) say(s *settings.Settings, v verdict) {
	condition := metav1.Condition{
		Type: c.messenger.condition(), Status: v.status, Reason: v.reason, Message: v.message, ObservedGeneration: s.Generation,
	}
	if c.said.Status != v.status || c.said.Reason != v.reason || c.said.Message != v.message {
		c.Log.Info(condition.Type, "status", v.status, "reason", v.reason, "message", v.message)
	}
	c.said = condition
	if c.Set != nil {
		c.Set(condition)
	}
}

func (c *Controller) withdraw() {
	c.said, c.failures = metav1.Condition{}, 0
	if c.Withdraw != nil {
		c.Withdraw(c.messenger.condition())
	}
}

// earliest returns the shorter wait; zero is none.
func earliest(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
