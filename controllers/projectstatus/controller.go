package projectstatus

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	verifyv1ac "github.com/phoneproof/phoneproof/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// fieldOwner names our conditions in the project's managed fields.
const fieldOwner = client.FieldOwner("phoneproof-serve")

const (
	// quiet is how long news are collected before they are written: a change of the spec makes several.
	quiet = 200 * time.Millisecond
	// burst writes may follow one another, and from then on one in every gap: a condition that cannot make up its mind
	// must not become a load.
	burst = 5
	gap   = 10 * time.Second
	// What waits for a failing API server resumes within maxBackoff after it does.
	minBackoff = time.Second
	maxBackoff = 30 * time.Second
	// callTimeout bounds one call.
	callTimeout = 10 * time.Second
)

// Projects is where the project's object comes from; see settings.Object.
type Projects interface {
	Project() *verifyv1.VerificationProject
	Observe() (changes <-chan struct{}, cancel func())
	Current() *settings.Settings
	Subscribe() (changes <-chan struct{}, cancel func())
}

// Client is what reads and writes the object; a client.Client without a cache.
type Client interface {
	client.Reader
	client.StatusClient
}

// Options are what a Controller works with.
type Options struct {
	Projects Projects
	Client   Client
	Board    *Board
	// Storage tells whether a request could be stored now: nil, a *StorageError, or an error of the store.
	Storage func(ctx context.Context) error
	// Unencrypted reports whether requests cross a network without TLS on their way to the store; they do not if nil.
	Unencrypted func() bool
	// StoragePeriod is how often a store that serves is asked; 30 s if zero.
	StoragePeriod time.Duration
	// Tell is told of each change of a status, after it was written.
	Tell func(project *verifyv1.VerificationProject, condition metav1.Condition, bad bool)
	// Clock tells the time; the real one if nil.
	Clock clock.PassiveClock
	Log   logr.Logger
}

// Controller writes conditions. Make a new one for each term of a lease.
type Controller struct {
	Options

	writes *rate.Limiter
	known  known
	told   []metav1.Condition
	url    string // of the receiver that the board has learned of
}

// New returns a controller that has not begun.
func New(o Options) *Controller {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Unencrypted == nil {
		o.Unencrypted = func() bool { return false }
	}
	o.StoragePeriod = cmp.Or(o.StoragePeriod, defaultStoragePeriod)
	return &Controller{Options: o, writes: rate.NewLimiter(rate.Every(gap), burst)}
}

// Run keeps the project's conditions true until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.watchStorage(ctx) })
	group.Go(func() error { return c.write(ctx) })
	return group.Wait()
}

func (c *Controller) write(ctx context.Context) error {
	project, forgetProject := c.Projects.Observe()
	defer forgetProject()
	current, forgetSettings := c.Projects.Subscribe()
	defer forgetSettings()
	for ctx.Err() == nil {
		sleep(ctx, quiet)
		c.insist(ctx)
		select {
		case <-project:
		case <-current:
		case <-c.Board.changed:
		case <-ctx.Done():
		}
	}
	return nil
}

// insist reconciles until that succeeds, or ctx ends.
func (c *Controller) insist(ctx context.Context) {
	backoff := wait.Backoff{Duration: minBackoff, Factor: 2, Jitter: 0.1, Steps: 10, Cap: maxBackoff}
	for ctx.Err() == nil {
		pause, err := c.reconcile(ctx)
		switch {
		case err == nil && pause == 0:
			return
		case err != nil && ctx.Err() == nil:
			c.Log.Error(err, "the project's conditions wait")
			pause = backoff.Step()
		}
		sleep(ctx, pause)
	}
}

// reconcile writes the conditions if the project has others. A pause above zero says when to come back instead.
func (c *Controller) reconcile(ctx context.Context) (pause time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	project := c.Projects.Project()
	if project == nil {
		return 0, nil
	}
	if err := c.learn(ctx, project); err != nil || c.known.uid != project.UID {
		return 0, err
	}
	c.known = c.known.latest(project)
	wanted := judge(c.observe(), metav1.NewTime(c.Clock.Now()).Rfc3339Copy())
	if !same(wanted, c.known.conditions) {
		if pause := c.pace(); pause > 0 {
			return pause, nil
		}
		switch err := c.apply(ctx, project, wanted); {
		case apierrors.IsConflict(err), apierrors.IsNotFound(err):
			return 0, nil // it is another one by now, or gone: the watch will bring it, and with it another try
		case err != nil:
			return 0, err
		}
	}
	c.tell(project, wanted)
	return 0, nil
}

// learn reads what the leader before has left, when the term begins and when the object is another one. The watch may
// not have brought its last write yet. Where the API server has no such object the watch will say so soon.
func (c *Controller) learn(ctx context.Context, project *verifyv1.VerificationProject) error {
	if c.known.uid == project.UID {
		return nil
	}
	found := &verifyv1.VerificationProject{}
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(project), found); err != nil {
		return client.IgnoreNotFound(err)
	}
	c.known = knownOf(found)
	c.told = c.known.conditions
	return nil
}

func (c *Controller) observe() observation {
	current := c.Projects.Current()
	if current.Webhook != nil && current.Webhook.URL != c.url {
		if c.url != "" {
			c.Board.anotherReceiver()
		}
		c.url = current.Webhook.URL
	}
	return observation{settings: current, learned: c.Board.snapshot(), present: c.known.conditions}
}

// pace returns how long to wait before one more write; zero means now.
func (c *Controller) pace() time.Duration {
	now := c.Clock.Now()
	reservation := c.writes.ReserveN(now, 1)
	pause := reservation.DelayFrom(now)
	if pause > 0 {
		reservation.CancelAt(now)
	}
	return pause
}

// apply writes all of the conditions, if the object is still the one that they were judged by. So a leader that does not
// know yet that it is none overwrites nothing, and what was meant for a project that was deleted never gets onto another
// one of its name; the UID alone would not see to it, because writes to a status leave the metadata out.
func (c *Controller) apply(ctx context.Context, project *verifyv1.VerificationProject, wanted []metav1.Condition) error {
	status := verifyv1ac.VerificationProjectStatus()
	for _, condition := range wanted {
		status.WithConditions(metav1ac.Condition().
			WithType(condition.Type).WithStatus(condition.Status).WithReason(condition.Reason).WithMessage(condition.Message).
			WithObservedGeneration(condition.ObservedGeneration).WithLastTransitionTime(condition.LastTransitionTime))
	}
	applied := verifyv1ac.VerificationProject(project.Name, project.Namespace).
		WithUID(project.UID).WithResourceVersion(c.known.version).WithStatus(status)
	if err := c.Client.Status().Apply(ctx, applied, fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply the conditions of project %s: %w", client.ObjectKeyFromObject(project), err)
	}
	c.known.conditions = wanted
	c.known.version = *applied.ResourceVersion // the answer is read into what was sent
	return nil
}

// tell tells what has changed since it was told last.
func (c *Controller) tell(project *verifyv1.VerificationProject, wanted []metav1.Condition) {
	for _, condition := range transitions(c.told, wanted) {
		c.Log.Info("a condition changed", "type", condition.Type, "status", condition.Status, "reason", condition.Reason)
		c.Tell(project, condition, bad(condition))
	}
	c.told = wanted
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
