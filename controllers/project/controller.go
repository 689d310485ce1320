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
	verifyv1ac "github.com/phoneproof/phoneproof/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/apply"
	"github.com/phoneproof/phoneproof/controllers/project/render"
)

// Options are what a Controller works with.
type Options struct {
	// Render is what the cluster's administrator decides for all projects. Whether there are HTTPRoutes is found out.
	Render render.Options
	// Permissions are what projects may ask for.
	Permissions Permissions
	// Namespaces are those of CacheOptions.
	Namespaces []string
	// MaxUnreadyRollouts is how many Deployments may get new pods at a time that is not of their project's making.
	MaxUnreadyRollouts int
	// GatewayPeriod is how often it is asked whether the Gateway API was installed; 30 s if zero.
	GatewayPeriod time.Duration
	Clock         clock.Clock
	Log           logr.Logger
}

// Controller reconciles projects.
type Controller struct {
	Options

	client   client.Client
	live     client.Reader // asks the API server itself
	applier  *apply.Applier
	gateway  *gateway
	recorder events.EventRecorder
	queue    queue // set before the first project is reconciled
	turns    turns
	pace     pace
	claims   claims
	hosts    hosts
}

// Reconcile brings one project closer to what it declares, and says in its status how it stands.
func (c *Controller) Reconcile(ctx context.Context, project *verifyv1.VerificationProject) (reconcile.Result, error) {
	if !project.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, c.enforceGrants(ctx, project)
	}
	if wait := c.pace.wait(project, c.Clock.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	seen, err := c.observe(ctx, project)
	if err != nil {
		return reconcile.Result{}, err
	}
	done := c.act(ctx, seen, decide(seen, &c.Permissions))
	if done.overtaken() {
		return reconcile.Result{RequeueAfter: settling}, nil
	}
	if err := c.report(ctx, seen, done); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: done.again}, done.err
}

// report writes the project's status, if it says anything new, and tells of it once it is written.
func (c *Controller) report(ctx context.Context, seen *observed, done outcome) error {
	before := &seen.project.Status
	conditions := done.conditions()
	list := timed(conditions, before.Conditions, metav1.NewTime(c.Clock.Now()))
	generation := seen.project.Generation
	if done.err != nil {
		generation = before.ObservedGeneration // it was not all acted on
	}
	if recorded(before, generation, list, done.claims) {
		return nil
	}
	err := c.client.Status().Apply(ctx, statusOf(seen.project, generation, list, done.claims), statusOwner, client.ForceOwnership)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return nil // the project has changed, which leads here again, or is gone
	case err != nil:
		return fmt.Errorf("apply the status of %s/%s: %w", seen.project.Namespace, seen.project.Name, err)
	}
	if c.pace.repeats(seen.project.UID, generation, conditions) {
		c.pace.mended(seen.project, c.Clock.Now())
	}
	if told := transition(before.Conditions, list); told != nil {
		c.recorder.Eventf(seen.project, nil, told.kind, told.reason, "Reconcile", "%s", told.note)
	}
	if told := newlyShared(before.Conditions, list); told != nil {
		c.recorder.Eventf(seen.project, nil, told.kind, told.reason, "Reconcile", "%s", told.note)
		c.logShared(seen, done)
	}
	return nil
}

// statusOwner is the field owner of the operator's conditions. It is the owner of the children too, which have no status of
// ours.
const statusOwner = apply.FieldOwner

// statusOf returns the operator's part of a status. The version keeps it from being judged by what is outdated: the status
// of before may be our own that the cache does not show yet.
func statusOf(
	p *verifyv1.VerificationProject, generation int64, list []metav1.Condition, claims []verifyv1.AccountClaim,
) *verifyv1ac.VerificationProjectApplyConfiguration {
	status := verifyv1ac.VerificationProjectStatus().WithObservedGeneration(generation)
	for i := range list {
		status.WithConditions(conditionOf(&list[i]))
	}
	for _, claim := range claims {
		status.WithClaims(verifyv1ac.AccountClaim().WithAccount(claim.Account).WithSince(claim.Since))
	}
	return verifyv1ac.VerificationProject(p.Name, p.Namespace).WithResourceVersion(p.ResourceVersion).WithStatus(status)
}

// logShared names for the administrator what the conditions leave out: the projects of other namespaces.
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
