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
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers"
	"github.com/phoneproof/phoneproof/internal/panics"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// fieldOwner names our conditions in the project's managed fields.
const fieldOwner = client.FieldOwner("phoneproof-serve")

const (
	// quiet is how long changes are collected before they are written: one change of the spec causes several.
	quiet = 200 * time.Millisecond
	// burst writes may follow one another; after that there is one in every gap, so that a flapping condition does not become a
	// load.
	burst = 5
	gap   = 10 * time.Second
	// callTimeout bounds one call.
	callTimeout = 10 * time.Second
)

// Projects provides the project's object and settings; see object in internal/server.
type Projects interface {
	Project() *verifyv1.VerificationProject
	Observe() (changes <-chan struct{}, cancel func())
	Current() *settings.Settings
	Subscribe() (changes <-chan struct{}, cancel func())
}

// Client reads and writes the object; a client.Client without a cache.
type Client interface {
	client.Reader
	client.StatusClient
}

// Options configure a Controller.
type Options struct {
	Projects Projects
	Client   Client
	Board    *Board
	// Storage checks whether a request could be stored now. It returns nil, a *StorageError, or an error of the store.
	Storage func(ctx context.Context) error
	// Unencrypted reports whether requests cross a network without TLS on their way to the store; nil means that they do not.
	Unencrypted func() bool
	// Activity returns what became of WhatsApp requests since a time of the store clock; nil to report no silence.
	Activity func(ctx context.Context, since time.Time) (verification.Activity, error)
	// CodesStarted is that of verification.Counter; nil to report no use of codes.
	CodesStarted func(ctx context.Context, m verification.Method, since time.Time) (map[string]int, error)
	// StoragePeriod is how often a working store is checked; 30 s if zero.
	StoragePeriod time.Duration
	// Tell is called after a status change has been written.
	Tell func(project *verifyv1.VerificationProject, condition metav1.Condition, bad bool)
	// Clock is the time source; the real one if nil.
	Clock clock.PassiveClock
	// StoreClock is the store clock; Clock if nil.
	StoreClock clock.PassiveClock
	Log        logr.Logger
}

// Controller writes conditions. One runs for each term of a lease.
type Controller struct {
	Options

	writes      *rate.Limiter
	known       known
	reported    []metav1.Condition
	receiverURL string // the receiver's URL that the board's state belongs to
}

// New returns a controller that is not running yet.
func New(o Options) *Controller {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.StoreClock == nil {
		o.StoreClock = o.Clock
	}
	if o.Unencrypted == nil {
		o.Unencrypted = func() bool { return false }
	}
	o.StoragePeriod = cmp.Or(o.StoragePeriod, defaultStoragePeriod)
	return &Controller{Options: o, writes: rate.NewLimiter(rate.Every(gap), burst)}
}

// Run keeps the project's conditions current until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	parts := []func(context.Context) error{c.watchStorage, c.writeUntilDone}
	if c.Activity != nil {
		parts = append(parts, c.watchSilence)
	}
	if c.CodesStarted != nil {
		parts = append(parts, c.watchCodes)
	}
	for _, part := range parts {
		group.Go(func() error { return panics.ToError(func() error { return part(ctx) }) })
	}
	return group.Wait()
}

func (c *Controller) writeUntilDone(ctx context.Context) error {
	project, forgetProject := c.Projects.Observe()
	defer forgetProject()
	current, forgetSettings := c.Projects.Subscribe()
	defer forgetSettings()
	return controllers.Run(ctx, controllers.Options{
		Reconcile: c.reconcileOnce,
		Failure:   "status update failed, will retry",
		Changes:   []<-chan struct{}{project, current, c.Board.changed}, Quiet: quiet, Log: c.Log,
	})
}

// reconcileOnce writes the conditions if the project's differ. A pause above zero is how long to wait before the write.
func (c *Controller) reconcileOnce(ctx context.Context) (pause time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	project := c.Projects.Project()
	if project == nil {
		return 0, nil
	}
	if err := c.readStatus(ctx, project); err != nil {
		return 0, fmt.Errorf("find former conditions: %w", err)
	}
	if c.known.uid != project.UID {
		return 0, nil
	}
	c.known = c.known.latest(project)
	wanted := judgeConditions(c.observeInputs(), metav1.NewTime(c.Clock.Now()).Rfc3339Copy())
	if !equalConditions(wanted, c.known.conditions) {
		if pause := c.writeDelay(); pause > 0 {
			return pause, nil
		}
		switch err := c.applyConditions(ctx, project, wanted); {
		case apierrors.IsConflict(err), apierrors.IsNotFound(err):
			return 0, nil // replaced or deleted: the watch brings the change, which starts another reconciliation
		case err != nil:
			return 0, fmt.Errorf("apply conditions: %w", err)
		}
	}
	c.notifyChanges(project, wanted)
	return 0, nil
}

// readStatus reads the former leader's conditions, when the term begins and when the object is replaced. The watch may not have
// brought its last write yet. If the API server has no such object, the watch will report that soon.
func (c *Controller) readStatus(ctx context.Context, project *verifyv1.VerificationProject) error {
	if c.known.uid == project.UID {
		return nil
	}
	found := &verifyv1.VerificationProject{}
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(project), found); err != nil {
		if err = client.IgnoreNotFound(err); err != nil {
			return fmt.Errorf("read project status: %w", err)
		}
		return nil
	}
	c.known = knownOf(found)
	c.reported = c.known.conditions
	return nil
}

func (c *Controller) observeInputs() observation {
	current := c.Projects.Current()
	if current.Webhook != nil && current.Webhook.URL != c.receiverURL {
		if c.receiverURL != "" {
			c.Board.resetReceiver()
		}
		c.receiverURL = current.Webhook.URL
	}
	return observation{settings: current, learned: c.Board.snapshot(), present: c.known.conditions}
}

// writeDelay returns how long to wait before one more write; zero means now.
func (c *Controller) writeDelay() time.Duration {
	now := c.Clock.Now()
	reservation := c.writes.ReserveN(now, 1)
	pause := reservation.DelayFrom(now)
	if pause > 0 {
		reservation.CancelAt(now)
	}
	return pause
}

// applyConditions writes all of the conditions, if the object's version is still the one that they were judged by. So a former
// leader overwrites nothing, and the conditions of a deleted project never reach another one of its name. The UID alone would not
// prevent that, because status writes ignore the metadata.
func (c *Controller) applyConditions(ctx context.Context, project *verifyv1.VerificationProject, wanted []metav1.Condition) error {
	applied := verifyv1.ApplyStatus(project.Namespace, project.Name, &verifyv1.VerificationProjectStatus{Conditions: wanted})
	applied.SetUID(project.UID)
	applied.SetResourceVersion(c.known.version)
	err := c.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), fieldOwner, client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("apply conditions of project %s: %w", client.ObjectKeyFromObject(project), err)
	}
	c.known.conditions = wanted
	c.known.version = applied.GetResourceVersion() // the response is decoded into the request
	return nil
}

// notifyChanges reports the status changes since the last call.
func (c *Controller) notifyChanges(project *verifyv1.VerificationProject, wanted []metav1.Condition) {
	for _, condition := range findTransitions(c.reported, wanted) {
		c.Log.Info("a condition changed", "type", condition.Type, "status", condition.Status, "reason", condition.Reason)
		c.Tell(project, condition, isBad(condition))
	}
	c.reported = wanted
}
