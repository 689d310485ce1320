package leader

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// Times are those of a lease. Zero values stand for client-go's usual ones.
type Times struct {
	// Duration is how long a lease is respected that is not renewed; 15 s.
	Duration time.Duration
	// RenewDeadline is how long its holder tries to renew it before it gives up; 10 s.
	RenewDeadline time.Duration
	// RetryPeriod is how long it and the others wait between tries; 2 s.
	RetryPeriod time.Duration
}

// Defaulted returns t with the usual times in the place of zeros.
func (t Times) Defaulted() Times {
	if t.Duration == 0 {
		t.Duration = 15 * time.Second
	}
	if t.RenewDeadline == 0 {
		t.RenewDeadline = 10 * time.Second
	}
	if t.RetryPeriod == 0 {
		t.RetryPeriod = 2 * time.Second
	}
	return t
}

// Options say which lease to campaign for.
type Options struct {
	Client    kubernetes.Interface
	Namespace string
	Name      string
	// Owner is the object that the lease goes with; nil while that is not known, and then no lease is made. Without
	// Owner the lease has no owner.
	Owner func() *metav1.OwnerReference
	// Lock keeps the lease where there is no cluster; then Client is not used.
	Lock resourcelock.Interface
	// Identity tells this candidate from the others; unique per process.
	Identity string
	Times    Times
	// Term is what the holder does. It ends when its context does, and soon.
	Term func(context.Context) error
	Log  logr.Logger
}

// Elector is a Runnable that holds the lease whenever it can, and runs a term while it does.
type Elector struct {
	Options

	lock *watchedLock
}

// New returns a campaign that has not begun, or an error about its times.
func New(o Options) (*Elector, error) {
	o.Times = o.Times.Defaulted()
	if o.Lock == nil {
		o.Lock = o.newLeaseLock()
	}
	c := &Elector{Options: o, lock: &watchedLock{Interface: o.Lock}}
	if _, err := leaderelection.NewLeaderElector(c.electionConfig(func(context.Context) {})); err != nil {
		return nil, fmt.Errorf("lease times: %w", err)
	}
	return c, nil
}

func (o *Options) newLeaseLock() resourcelock.Interface {
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name},
		Client:     o.Client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: o.Identity},
	}
	if o.Owner == nil {
		return lock
	}
	return &ownedLock{LeaseLock: lock, owner: o.Owner}
}

// HeldSafely reports whether the lease was renewed within half its duration. Then no other replica can have taken it, and the
// other half is left to finish what is begun.
func (c *Elector) HeldSafely() bool {
	renewed := c.lock.renewedAt()
	return !renewed.IsZero() && time.Since(renewed) < c.Times.Duration/2
}

// newPauses returns the pauses after terms that failed: a second at first, and a minute at last.
func newPauses() *wait.Backoff {
	return &wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 8, Cap: time.Minute}
}

// Start campaigns until ctx ends; then the term ends, and after it the lease is given up for the next holder. After a term that failed it
// pauses, longer each time: another replica may do better.
func (c *Elector) Start(ctx context.Context) error {
	pauses := newPauses()
	for ctx.Err() == nil {
		t := &term{run: c.Term, until: ctx, log: c.Log}
		elector, err := leaderelection.NewLeaderElector(c.electionConfig(t.runWork))
		if err != nil {
			return fmt.Errorf("campaign for lease %s: %w", c.Name, err)
		}
		electing := t.electionContext(klog.NewContext(context.WithoutCancel(ctx), c.Log))
		elector.Run(electing)
		c.lock.clearRenewal()
		t.waitForWork()
		if !t.failed {
			pauses = newPauses()
			continue
		}
		pause := time.NewTimer(pauses.Step())
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		pause.Stop()
	}
	return nil
}

// NeedLeaderElection returns false: every replica campaigns.
func (c *Elector) NeedLeaderElection() bool { return false }

func (c *Elector) electionConfig(lead func(context.Context)) leaderelection.LeaderElectionConfig {
	return leaderelection.LeaderElectionConfig{
		Lock:          c.lock,
		Name:          c.Name,
		LeaseDuration: c.Times.Duration, RenewDeadline: c.Times.RenewDeadline, RetryPeriod: c.Times.RetryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: lead,
			OnStoppedLeading: func() {},
		},
	}
}

// term runs the work of one election, and keeps the lease until the work has ended.
type term struct {
	run   func(context.Context) error
	until context.Context //nolint:containedctx // the term ends with the process, the lease after the term
	log   logr.Logger

	mu      sync.Mutex
	stop    context.CancelFunc // ends the election and gives the lease up
	unhook  func() bool        // forgets the process's end
	running chan struct{}      // closed when the work has ended; nil before it began
	failed  bool               // written before running is closed
}

// electionContext returns the context of the election: it ends with the process, but not before the work has.
func (t *term) electionContext(ctx context.Context) context.Context {
	electing, stop := context.WithCancel(ctx)
	t.stop = stop
	t.unhook = context.AfterFunc(t.until, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.running == nil {
			stop()
		}
	})
	return electing
}

// runWork does the work until the lease is lost or the process ends.
func (t *term) runWork(leading context.Context) {
	running := make(chan struct{})
	t.mu.Lock()
	if leading.Err() != nil || t.until.Err() != nil {
		t.mu.Unlock()
		t.stop()
		return
	}
	t.running = running
	t.mu.Unlock()

	working, cancel := context.WithCancel(leading)
	defer context.AfterFunc(t.until, cancel)()
	defer cancel()
	t.log.Info("leading")
	if err := t.run(working); err != nil {
		t.failed = true
		t.log.Error(err, "the term ended early")
	}
	t.log.Info("no longer leading")
	close(running)
	t.stop()
}

// waitForWork returns when the work, if it began, has ended.
func (t *term) waitForWork() {
	defer t.stop()
	t.unhook()
	t.mu.Lock()
	running := t.running
	t.mu.Unlock()
	if running != nil {
		<-running
	}
}

// watchedLock notes when this process last made the lease its own.
type watchedLock struct {
	resourcelock.Interface

	mu      sync.Mutex
	renewed time.Time
}

// Create notes the time of a lease that is new.
func (l *watchedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.recordRenewal(record, func() error { return l.Interface.Create(ctx, record) })
}

// Update notes the time of a renewal.
func (l *watchedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.recordRenewal(record, func() error { return l.Interface.Update(ctx, record) })
}

// recordRenewal takes the time before the write: the others count from its arrival, which is later.
func (l *watchedLock) recordRenewal(record resourcelock.LeaderElectionRecord, write func() error) error {
	asked := time.Now()
	if err := write(); err != nil {
		return fmt.Errorf("write lease: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if record.HolderIdentity == l.Identity() {
		l.renewed = asked
	} else {
		l.renewed = time.Time{}
	}
	return nil
}

func (l *watchedLock) clearRenewal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed = time.Time{}
}

func (l *watchedLock) renewedAt() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.renewed
}
