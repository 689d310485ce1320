package project

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxRolloutTime is how long a rollout counts. New pods have as much time to become ready, but repeated edits of a project would
// renew that time.
const maxRolloutTime = 10 * time.Minute

// turn is the permission for one Deployment to get new pods.
type turn struct {
	deployment client.ObjectKey
	generation int64 // before the change
}

// turns lets a few Deployments get new pods at a time. The Deployments themselves show which have a turn, so this survives
// restarts and changes of leaders; kept here are the turns that the cache does not show yet, and since when each rollout has been
// observed.
type turns struct {
	mu    sync.Mutex
	taken map[types.UID]turn      // by the Deployment's UID
	since map[types.UID]time.Time // by the Deployment's UID
	// waiting are the projects that were refused a turn and have not been reconciled since, in the order of their last refusals. A new
	// process reconciles every project, so each is refused again.
	waiting []client.ObjectKey
	// namespaces are those with Deployments of projects; nil if they must be counted again.
	namespaces map[string]bool
}

// rolloutIndex is the index of the projects' Deployments that get new pods.
const rolloutIndex = "phoneproof.dev/rollout"

// underwayValue is the only value in rolloutIndex.
const underwayValue = "underway"

// indexByRollout returns whether a Deployment gets new pods, for the index. One without a project takes no turn, whatever its
// labels.
func indexByRollout(object client.Object) []string {
	deployment, ok := object.(*appsv1.Deployment)
	if !ok || projectOf(deployment) == nil || !isUnderway(deployment) {
		return nil
	}
	return []string{underwayValue}
}

// takeTurn takes a turn for a project's Deployment, and reports whether there was one. If not, the project waits until nextWaiting
// returns it.
func (t *turns) takeTurn(
	ctx context.Context, reader client.Reader, project client.ObjectKey, own *appsv1.Deployment, limit int, now time.Time,
) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	rolling, err := t.observeRollouts(ctx, reader, now)
	if err != nil {
		return false, fmt.Errorf("observe rollouts: %w", err)
	}
	if !t.mayRoll(rolling, own, limit, now) {
		t.waiting = append(t.waiting, project)
		return false, nil
	}
	if t.taken == nil {
		t.taken = map[types.UID]turn{}
	}
	t.taken[own.UID] = turn{client.ObjectKeyFromObject(own), own.Generation}
	return true, nil
}

// observeRollouts returns the Deployments that get new pods or are about to. The caller holds the lock: an earlier read might miss
// a turn that was taken since and is already forgotten here.
func (t *turns) observeRollouts(ctx context.Context, reader client.Reader, now time.Time) (map[types.UID]*appsv1.Deployment, error) {
	rolling, err := t.listRolling(ctx, reader)
	if err != nil {
		return nil, fmt.Errorf("find rollouts: %w", err)
	}
	if t.namespaces == nil {
		if err := t.countNamespaces(ctx, reader); err != nil {
			return nil, fmt.Errorf("count namespaces: %w", err)
		}
	}
	t.followRollouts(rolling, now)
	return rolling, nil
}

// nextWaiting returns the waiting projects for which there is a turn now. They no longer wait: each must be reconciled, and is
// refused again if others were faster.
func (t *turns) nextWaiting(ctx context.Context, reader client.Reader, limit int, now time.Time) ([]client.ObjectKey, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		return nil, nil
	}
	rolling, err := t.observeRollouts(ctx, reader, now)
	if err != nil {
		return nil, fmt.Errorf("observe rollouts: %w", err)
	}
	var next []client.ObjectKey
	counts := t.countRollouts(rolling, now)
	t.waiting = slices.DeleteFunc(t.waiting, func(project client.ObjectKey) bool {
		if !t.isTurnFree(counts, project.Namespace, limit) {
			return false
		}
		counts[project.Namespace]++
		next = append(next, project)
		return true
	})
	return next, nil
}

// stopWaiting removes a project from those that wait for a turn.
func (t *turns) stopWaiting(project client.ObjectKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = slices.DeleteFunc(t.waiting, func(other client.ObjectKey) bool { return other == project })
}

// giveBack returns an unused turn.
func (t *turns) giveBack(own types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.taken, own)
}

// resetNamespaces makes the next turn count the namespaces again, after a Deployment was created or deleted.
func (t *turns) resetNamespaces() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.namespaces = nil
}

// listRolling returns the Deployments that get new pods or are about to, and drops the turns that the cache shows, or that are
// over. Turns are read first, so that one that the cache begins to show in between is counted rather than missed.
func (t *turns) listRolling(ctx context.Context, reader client.Reader) (map[types.UID]*appsv1.Deployment, error) {
	rolling := map[types.UID]*appsv1.Deployment{}
	for uid, turn := range t.taken {
		d := &appsv1.Deployment{}
		err := reader.Get(ctx, turn.deployment, d, client.UnsafeDisableDeepCopy)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return nil, fmt.Errorf("read Deployment with a turn: %w", err)
		case err != nil || d.UID != uid || d.Generation > turn.generation:
			delete(t.taken, uid)
		default:
			rolling[uid] = d
		}
	}
	var list appsv1.DeploymentList
	if err := reader.List(ctx, &list, client.MatchingFields{rolloutIndex: underwayValue}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Deployments with new pods: %w", err)
	}
	for i := range list.Items {
		rolling[list.Items[i].UID] = &list.Items[i]
	}
	return rolling, nil
}

// countNamespaces finds the namespaces that have Deployments of projects.
func (t *turns) countNamespaces(ctx context.Context, reader client.Reader) error {
	var all appsv1.DeploymentList
	if err := reader.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Deployments: %w", err)
	}
	t.namespaces = map[string]bool{}
	for i := range all.Items {
		if projectOf(&all.Items[i]) != nil {
			t.namespaces[all.Items[i].Namespace] = true
		}
	}
	return nil
}

// followRollouts records since when each rollout has been in progress.
func (t *turns) followRollouts(rolling map[types.UID]*appsv1.Deployment, now time.Time) {
	since := map[types.UID]time.Time{}
	for uid := range rolling {
		first, ok := t.since[uid]
		if !ok {
			first = now
		}
		since[uid] = first
	}
	t.since = since
}

// mayRoll reports whether a Deployment may get new pods: it has a turn already, or one is free.
func (t *turns) mayRoll(rolling map[types.UID]*appsv1.Deployment, own *appsv1.Deployment, limit int, now time.Time) bool {
	return rolling[own.UID] != nil || t.isTurnFree(t.countRollouts(rolling, now), own.Namespace, limit)
}

// countRollouts returns the number of rollouts that count, by namespace. Those that take too long do not count, so that a few
// projects cannot block all others. Stuck and paused Deployments do not count either: the former had their time, the latter have
// no limit.
func (t *turns) countRollouts(rolling map[types.UID]*appsv1.Deployment, now time.Time) map[string]int {
	counts := map[string]int{}
	for uid, d := range rolling {
		if now.Sub(t.since[uid]) < maxRolloutTime {
			counts[d.Namespace]++
		}
	}
	return counts
}

// isTurnFree reports whether one more Deployment of a namespace may get new pods. A namespace has a share of the turns, and
// rollouts beyond that do not count.
func (t *turns) isTurnFree(counts map[string]int, namespace string, limit int) bool {
	namespaces := len(t.namespaces) // each has a share, even an unused one
	if !t.namespaces[namespace] {
		namespaces++
	}
	share := computeShare(limit, namespaces)
	under := 0
	for _, n := range counts {
		under += min(n, share)
	}
	return counts[namespace] < share && under < limit
}

// computeShare returns how many turns one of some namespaces may have: as many as the others, and at least a quarter of all, so
// that many namespaces with few projects do not block one with many.
func computeShare(limit, namespaces int) int {
	const most = 4
	parts := min(namespaces, most)
	return (limit + parts - 1) / parts
}
