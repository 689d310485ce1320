package project

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/render"
)

// ofExposures reconciles the project that owns an exposure, and the projects that ask for a host which the exposure gives up.
func (c *Controller) ofExposures() handler.EventHandler {
	add := func(ctx context.Context, queue queue, before, after client.Object) {
		owner := projectOf(before)
		if owner == nil {
			return
		}
		self := &verifyv1.VerificationProject{}
		self.Namespace, self.Name, self.UID = before.GetNamespace(), owner.Name, owner.UID
		c.addAsking(ctx, queue, self, findLostHosts(before, after))
	}
	children := ofChildren()
	return handler.Funcs{
		CreateFunc: children.Create,
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue queue) {
			children.Update(ctx, e, queue)
			add(ctx, queue, e.ObjectOld, e.ObjectNew)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue queue) {
			children.Delete(ctx, e, queue)
			add(ctx, queue, e.Object, nil)
		},
	}
}

// findLostHosts returns the hosts that an exposure had before a change and no longer has, or has at other paths. After is nil if
// it was deleted.
func findLostHosts(before, after client.Object) []string {
	had := indexByHost(before)
	if after == nil {
		return had
	}
	_, formerPaths := readRules(before)
	if _, paths := readRules(after); !slices.Equal(formerPaths, paths) {
		return had
	}
	return subtractHosts(had, indexByHost(after))
}

// addAskingProject adds the projects that ask for a host which a project no longer asks for, or asks for at other paths. After is
// nil if it was deleted.
func (c *Controller) addAskingProject(ctx context.Context, queue queue, before, after client.Object) {
	former, ok := before.(*verifyv1.VerificationProject)
	if !ok {
		return
	}
	lost := collectHosts(former, true)
	if now, ok := after.(*verifyv1.VerificationProject); ok && slices.Equal(render.Paths(former), render.Paths(now)) {
		lost = subtractHosts(lost, collectHosts(now, true))
	}
	c.addAsking(ctx, queue, former, lost)
}

// addAsking adds the other projects that ask for one of these hosts, after a delay: the first that is reconciled gets it.
func (c *Controller) addAsking(ctx context.Context, queue queue, self *verifyv1.VerificationProject, hosts []string) {
	for _, other := range c.listAsking(ctx, self, hosts) {
		queue.AddAfter(requestFor(other), delayAsking(self, other))
	}
}

// listAsking returns the other projects that ask for one of these hosts, in all namespaces: several may share a host by grant. If
// a list fails, some are missing; they are reconciled after afterHeld. The projects must not be changed.
func (c *Controller) listAsking(
	ctx context.Context, self *verifyv1.VerificationProject, hosts []string,
) (others []*verifyv1.VerificationProject) {
	listed := map[types.UID]bool{self.UID: true}
	for _, host := range hosts {
		var asking verifyv1.VerificationProjectList
		if err := c.client.List(ctx, &asking, client.MatchingFields{hostIndex: host}, client.UnsafeDisableDeepCopy); err != nil {
			c.Log.Error(err, "list projects that ask for host failed")
			return others
		}
		for i := range asking.Items {
			if other := &asking.Items[i]; !listed[other.UID] {
				listed[other.UID] = true
				others = append(others, other)
			}
		}
	}
	return others
}

// delayAsking returns the delay of the reconciliation of a project when another one gives up a host.
func delayAsking(self, other *verifyv1.VerificationProject) time.Duration {
	if other.Namespace == self.Namespace {
		return settling
	}
	return sharingDelay
}

// waitsForHost reports whether a project is Stalled because its host is in use.
func waitsForHost(p *verifyv1.VerificationProject) bool {
	stalled := meta.FindStatusCondition(p.Status.Conditions, verifyv1.ConditionStalled)
	return stalled != nil && stalled.Reason == verifyv1.ReasonHostInUse
}
