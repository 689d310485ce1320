package project

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/apply"
	"github.com/phoneproof/phoneproof/controllers/project/render"
)

// Options configure a Controller.
type Options struct {
	// Render holds the decisions of the cluster's administrator for all projects. HTTPRoutes is discovered.
	Render render.Options
	// Permissions are what projects may ask for.
	Permissions Permissions
	// Namespaces are those of CacheOptions, and LeftOut further ones, which could not be read.
	Namespaces, LeftOut []string
	// MaxUnreadyRollouts is how many Deployments may get new pods at a time for reasons other than a change of their project.
	MaxUnreadyRollouts int
	// GatewayPeriod is how often the Gateway API is discovered; 30 s if zero.
	GatewayPeriod time.Duration
	Clock         clock.Clock
	Log           logr.Logger
}

// Controller reconciles projects.
type Controller struct {
	Options

	client   client.Client
	live     client.Reader // reads from the API server, not from the cache
	applier  *apply.Applier
	gateway  *gateway
	recorder events.EventRecorder
	queue    queue // set before the first project is reconciled
	began    time.Time
	turns    turns
	pace     pace
	claims   claims
	hosts    hosts
}

// Reconcile brings one project closer to its spec, and reports the result in its status.
func (c *Controller) Reconcile(ctx context.Context, project *verifyv1.VerificationProject) (reconcile.Result, error) {
	if !project.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, c.enforceGrants(ctx, project)
	}
	if wait := c.pace.delay(project, c.Clock.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	seen, err := c.observeProject(ctx, project)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("observe project: %w", err)
	}
	done := c.carryOutDecision(ctx, seen, decideAction(seen, &c.Permissions))
	if done.isOvertaken() {
		return reconcile.Result{RequeueAfter: settling}, nil
	}
	if err := c.writeStatus(ctx, seen, done); err != nil {
		return reconcile.Result{}, fmt.Errorf("write status: %w", err)
	}
	return reconcile.Result{RequeueAfter: done.again}, done.err
}

// writeStatus writes the project's status, if it differs, and emits Events after the write.
func (c *Controller) writeStatus(ctx context.Context, seen *observed, done outcome) error {
	before := &seen.project.Status
	conditions := done.conditions()
	list := withTimes(conditions, before.Conditions, metav1.NewTime(c.Clock.Now()))
	generation := seen.project.Generation
	if done.err != nil {
		generation = before.ObservedGeneration // it was not carried out completely
	}
	if isRecorded(before, generation, list, done.claims) {
		return nil
	}
	status := &verifyv1.VerificationProjectStatus{ObservedGeneration: generation, Conditions: list, Claims: done.claims}
	applied := verifyv1.ApplyStatus(seen.project.Namespace, seen.project.Name, status)
	// It prevents a write that was judged by a stale status: the former one may be our own that the cache does not show yet.
	applied.SetResourceVersion(seen.project.ResourceVersion)
	err := c.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), statusOwner, client.ForceOwnership)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return nil // the project has changed, which requeues it, or was deleted
	case err != nil:
		return fmt.Errorf("apply status of project %s/%s: %w", seen.project.Namespace, seen.project.Name, err)
	}
	if c.pace.recordStatement(seen.project.UID, generation, conditions) {
		c.pace.recordCorrection(seen.project, c.Clock.Now())
	}
	if event := findTransition(before.Conditions, list); event != nil {
		c.recorder.Eventf(seen.project, nil, event.kind, event.reason, "Reconcile", "%s", event.note)
	}
	if event := newlyShared(before.Conditions, list); event != nil {
		c.recorder.Eventf(seen.project, nil, event.kind, event.reason, "Reconcile", "%s", event.note)
		c.logShared(seen, done)
	}
	return nil
}

// statusOwner is the field owner of the operator's conditions. It also owns the children, which have no status of ours.
const statusOwner = apply.FieldOwner

// logShared names the projects of other namespaces for the administrator, because the conditions leave them out.
func (c *Controller) logShared(seen *observed, done outcome) {
	for i := range seen.accounts {
		if a := &seen.accounts[i]; len(a.elsewhere) > 0 {
			c.Log.Info("account is named in several namespaces", "project", client.ObjectKeyFromObject(seen.project),
				"account", a.name, "others", a.elsewhere)
		}
	}
	if len(done.sharedHosts) > 0 {
		c.Log.Info("host is answered in several namespaces", "project", client.ObjectKeyFromObject(seen.project),
			"hosts", done.sharedHosts)
	}
}
