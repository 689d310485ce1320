package project

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/apply"
	"github.com/phoneproof/phoneproof/controllers/project/render"
)

// Delays until a retry, if no event announces that it may help.
const (
	// afterConflict: foreign objects are not watched.
	afterConflict = time.Minute
	// afterRejection: the cause of a rejection, such as a quota or a policy, may change.
	afterRejection = 10 * time.Minute
	// afterHeld: a project that gives up a host requeues no other, whether it held or shared it.
	afterHeld = time.Minute
)

// carryOutDecision carries out a decision.
func (c *Controller) carryOutDecision(ctx context.Context, seen *observed, d decision) outcome {
	done := outcome{project: seen.project, deployment: seen.children.Deployment(), blocker: d.blocker, now: c.Clock.Now()}
	for i := range seen.accounts {
		done.claims = append(done.claims, seen.accounts[i].claim)
	}
	switch d.action {
	case carryOut:
		c.applyWanted(ctx, seen, &done)
	case stop:
		done.err = errors.Join(c.stopPods(ctx, seen), c.removeDenied(ctx, seen))
	case keep:
		done.err = c.removeDenied(ctx, seen)
	}
	done.shared = describeShared(seen.accounts, done.sharedHosts)
	if len(done.sharedHosts) > 0 {
		done.again = findSooner(done.again, afterHeld)
	}
	if done.blocker == nil && done.err != nil {
		done.blocker = unfinishedBlocker(done.err, isSteady(seen.project))
	}
	if rolloutOf(done.deployment) == rolledOut && !seen.project.Suspended() {
		done.again = findSooner(done.again, done.remainingStart())
	}
	_, left := done.findRefusal()
	done.again = findSooner(done.again, left)
	return done
}

// findSooner returns the shorter of two delays, of which zero means never.
func findSooner(one, other time.Duration) time.Duration {
	if one == 0 || other == 0 {
		return max(one, other)
	}
	return min(one, other)
}

// applyWanted applies what the project wants.
func (c *Controller) applyWanted(ctx context.Context, seen *observed, done *outcome) {
	options := c.Render
	options.HTTPRoutes = seen.routes
	wanted := render.Project(seen.project, options)
	rolls, err := apply.Rolls(seen.children, wanted)
	if err != nil {
		done.err = fmt.Errorf("compare pod template: %w", err)
		return
	}
	decided, err := c.hosts.requestHosts(ctx, c.client, seen.routes, c.newHostRequest(seen), &c.Permissions)
	if err != nil {
		done.err = err
		return
	}
	limitExposures(&wanted, seen.project, decided.open)
	done.sharedHosts = decided.shared
	// A rollout that the project did not ask for waits for its turn, unless it reverts an edit of the pods.
	var hold time.Duration
	queues := rolls && isSteady(seen.project) && !seen.project.Suspended() && !apply.ArePodsEdited(done.deployment)
	if queues {
		if hold, err = c.turns.takeTurn(ctx, c.client, done.deployment, c.MaxUnreadyRollouts, done.now); err != nil {
			done.err = fmt.Errorf("take turn: %w", err)
			return
		}
	}
	result, err := c.applier.Apply(ctx, apply.Request{
		Project: seen.project, Observed: seen.children, Wanted: wanted, HoldDeployment: hold > 0,
	})
	done.err = err
	if isExposureRefused(result) {
		c.hosts.releaseHosts(seen.project.UID)
	}
	done.rolled = rolls && isDeploymentApplied(result, done.deployment.Name)
	if queues && hold == 0 && !done.rolled && err == nil { // after an error it is tried again
		c.turns.giveBack(done.deployment)
	}
	if restored := restoredChildren(result, decided.opened); isSteady(seen.project) && len(restored) > 0 {
		c.pace.recordCorrection(seen.project, c.Clock.Now())
		c.Log.Info("children corrected", "project", client.ObjectKeyFromObject(seen.project), "children", restored)
	}
	if seen.project.Suspended() && isReplicasUnset(result) {
		done.err = errors.Join(done.err, c.stopPods(ctx, seen))
	}
	done.addObstacle(findObstacle(seen, result, decided, hold > 0))
	done.again = findSooner(done.again, hold)
}

// addObstacle adds what was found while applying to what was found before.
func (o *outcome) addObstacle(found *blocker, again time.Duration) {
	switch {
	case o.blocker == nil:
		o.blocker, o.again = found, again
	case found != nil && found.weight == stalls:
		o.beside, o.again = found, again
	}
}

// restoredChildren returns the children that differed from what was applied before. Those that are exposed at new hosts do not
// count, because the operator itself delays them until a pod answers.
func restoredChildren(result apply.Result, opened bool) []apply.Ref {
	return slices.DeleteFunc(slices.Concat(result.Applied, result.Deleted), func(ref apply.Ref) bool {
		return opened && isExposure(ref)
	})
}

// isReplicasUnset reports whether the Deployment's number of pods could not be set.
func isReplicasUnset(result apply.Result) bool {
	isDeployment := func(ref apply.Ref) bool { return ref.Kind == "Deployment" }
	return slices.ContainsFunc(result.Waiting, isDeployment) ||
		slices.ContainsFunc(result.Rejections, func(r apply.Rejection) bool { return isDeployment(r.Ref) })
}

// stopPods deletes the Deployment in the background; its pods are deleted after it.
func (c *Controller) stopPods(ctx context.Context, seen *observed) error {
	deployment := seen.children.Deployment()
	if deployment == nil || deployment.DeletionTimestamp != nil {
		return nil
	}
	err := c.client.Delete(ctx, deployment, client.Preconditions{UID: &deployment.UID})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete Deployment %s: %w", deployment.Name, err)
	}
	return nil
}

// enforceGrants stops what a project that is being deleted must not run. A finalizer can keep the project and its children for
// any time; otherwise the children are deleted with it, and its status is no longer written.
func (c *Controller) enforceGrants(ctx context.Context, project *verifyv1.VerificationProject) error {
	children, err := c.applier.Observe(ctx, project)
	if err != nil {
		return fmt.Errorf("observe project in deletion: %w", err)
	}
	seen := &observed{project: project, children: children}
	for _, name := range listAccounts(&project.Spec) {
		if c.Permissions.mayUseAccount(project.Namespace, name) {
			continue
		}
		if err := c.stopPods(ctx, seen); err != nil {
			return fmt.Errorf("stop pods: %w", err)
		}
	}
	return c.removeDenied(ctx, seen)
}

// findObstacle returns why the project differs from its spec, by the result of applying it, and when to retry; nil if it does not
// differ.
func findObstacle(seen *observed, result apply.Result, decided hostDecision, held bool) (*blocker, time.Duration) {
	closed, closedFor := explainHosts(decided), decided.delay // grants change only with a restart
	if len(decided.held) > 0 {
		closedFor = afterHeld
	}
	switch {
	case len(result.Conflicts) > 0:
		return &blocker{stalls, verifyv1.ReasonConflict, fmt.Sprintf(
			"%s exists and does not belong to this project; delete or rename it", joinRefs(result.Conflicts))}, afterConflict
	case len(result.Rejections) > 0:
		return &blocker{stalls, verifyv1.ReasonChildRejected, describeRejection(result.Rejections[0])}, findSooner(afterRejection, closedFor)
	case closed != nil:
		return closed, closedFor
	case seen.project.Spec.Expose.HTTPRoute != nil && !seen.routes:
		return &blocker{plain, verifyv1.ReasonGatewayAPIMissing,
			"spec.expose.httpRoute: the cluster has no HTTPRoute; install the Gateway API, or use spec.expose.ingress"}, 0
	case held:
		return &blocker{aside, verifyv1.ReasonRolloutQueued,
			"new pods are due by the operator's upgrade or flags, and start when other projects' are ready"}, 0
	default:
		return nil, 0
	}
}

func describeRejection(r apply.Rejection) string {
	if r.Field == "" {
		return fmt.Sprintf("the API server refuses %s: %s", r.Ref, r.Message)
	}
	return fmt.Sprintf("the API server refuses %s: %s: %s", r.Ref, r.Field, r.Message)
}

// unfinishedBlocker describes an error that is retried, in constant words. A project whose spec was carried out before goes on
// working.
func unfinishedBlocker(err error, steady bool) *blocker {
	b := &blocker{waits, verifyv1.ReasonProgressing, "not everything is applied yet: the API server does not answer; it is tried again"}
	if reason := apierrors.ReasonForError(err); reason != "" {
		b.message = fmt.Sprintf("not everything is applied yet: the API server answers %s; it is tried again", reason)
	}
	if steady {
		b.weight = aside
	}
	return b
}

// isSteady reports whether the current spec was carried out before, or refused.
func isSteady(p *verifyv1.VerificationProject) bool {
	return p.Status.ObservedGeneration == p.Generation
}

func isDeploymentApplied(result apply.Result, deployment string) bool {
	return slices.Contains(result.Applied, apply.Ref{Kind: "Deployment", Name: deployment})
}

func joinRefs(refs []apply.Ref) string {
	var out []string
	for _, ref := range refs {
		out = append(out, ref.String())
	}
	return strings.Join(out, ", ")
}

// isOvertaken reports whether an object was changed in the meantime. The project is then reconciled again, without a new status.
func (o outcome) isOvertaken() bool { return apierrors.IsConflict(o.err) }
