package project

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// maxRolloutTime is how long a rollout counts. New pods have as much time to become ready, but repeated edits of a project would
	// renew that time.
	maxRolloutTime = 10 * time.Minute
	// askDelay is how long a project without a turn waits at least before it asks again, and askInterval the time between two of one
	// namespace that ask. It grows with the namespaces above maxAsking, so waiting costs the same however many wait.
	askDelay, askInterval, maxAsking = 10 * time.Second, time.Second, 10
)

// turn is the permission for one Deployment to get new pods.
type turn struct {
	deployment client.ObjectKey
	generation int64 // before the change
	since      time.Time
}

// turns lets a few Deployments at a time get new pods by what the operator changed: its image or flags, so its process is new.
// What a project's own change rolls meanwhile takes no turn.
type turns struct {
	mu sync.Mutex
	// given are the turns by the Deployment's UID. The first are those of rollouts that were in progress when the first project
	// asked, so this survives restarts and changes of leaders.
	given map[types.UID]turn
	// share is how many turns the Deployments of one namespace may have.
	share int
	// places are when each waiting Deployment asks again, and last is when the last one of each namespace does.
	places map[types.UID]time.Time
	last   map[string]time.Time
}

// takeTurn takes a turn for a Deployment. If there is none, it returns how long to wait before asking again.
func (t *turns) takeTurn(
	ctx context.Context, reader client.Reader, own *appsv1.Deployment, limit int, now time.Time,
) (delay time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.given == nil {
		if err := t.adoptRollouts(ctx, reader, limit, now); err != nil {
			return 0, fmt.Errorf("adopt rollouts: %w", err)
		}
	}
	if err := t.dropEnded(ctx, reader, now); err != nil {
		return 0, fmt.Errorf("drop ended turns: %w", err)
	}
	if _, ok := t.given[own.UID]; ok {
		return 0, nil
	}
	if !t.isTurnFree(own.Namespace, limit) {
		return t.findPlace(own, now).Sub(now), nil
	}
	delete(t.places, own.UID)
	t.given[own.UID] = turn{client.ObjectKeyFromObject(own), own.Generation, now}
	return 0, nil
}

// giveBack returns an unused turn. One whose Deployment has changed since is used, although admission that rewrites the pods can make
// every later apply seem without effect; dropEnded drops it.
func (t *turns) giveBack(own *appsv1.Deployment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.given[own.UID].generation == own.Generation {
		delete(t.given, own.UID)
	}
}

// adoptRollouts gives a turn to each Deployment that gets new pods already, and each namespace its share: as many turns as the
// others, and at least a quarter of all, so that many namespaces with few projects do not block one with many.
func (t *turns) adoptRollouts(ctx context.Context, reader client.Reader, limit int, now time.Time) error {
	const most = 4
	var all appsv1.DeploymentList
	if err := reader.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Deployments: %w", err)
	}
	t.given, t.places, t.last = map[types.UID]turn{}, map[types.UID]time.Time{}, map[string]time.Time{}
	namespaces := map[string]bool{}
	for i := range all.Items {
		d := &all.Items[i]
		if projectOf(d) == nil {
			continue
		}
		namespaces[d.Namespace] = true
		if isUnderway(d) {
			t.given[d.UID] = turn{client.ObjectKeyFromObject(d), d.Generation - 1, now}
		}
	}
	parts := max(1, min(len(namespaces), most))
	t.share = (limit + parts - 1) / parts
	return nil
}

// dropEnded drops the turns of rollouts that are over or take too long, so that a few projects cannot block all others. Stuck and
// paused rollouts are over: the former had their time, the latter have no limit.
func (t *turns) dropEnded(ctx context.Context, reader client.Reader, now time.Time) error {
	for uid, turn := range t.given {
		d := &appsv1.Deployment{}
		err := reader.Get(ctx, turn.deployment, d, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read Deployment with a turn: %w", err)
		}
		begun := d.Generation > turn.generation // until then the cache does not show the change
		if err != nil || d.UID != uid || begun && !isUnderway(d) || now.Sub(turn.since) >= maxRolloutTime {
			delete(t.given, uid)
		}
	}
	return nil
}

// isTurnFree reports whether one more Deployment of a namespace may get new pods. What a namespace rolled out beyond its share when
// the operator started does not count.
func (t *turns) isTurnFree(namespace string, limit int) bool {
	counts := map[string]int{}
	for _, turn := range t.given {
		counts[turn.deployment.Namespace]++
	}
	counted := 0
	for _, n := range counts {
		counted += min(n, t.share)
	}
	return counts[namespace] < t.share && counted < limit
}

// findPlace returns when a Deployment asks again: after the others of its namespace, however many wait in another. It keeps its place
// if it asks before that, so that frequent events of one project do not delay the others.
func (t *turns) findPlace(own *appsv1.Deployment, now time.Time) time.Time {
	if place := t.places[own.UID]; place.After(now) {
		return place
	}
	asking := 0 // namespaces
	for _, last := range t.last {
		if last.After(now) {
			asking++
		}
	}
	interval := askInterval * time.Duration(max(asking, maxAsking)) / maxAsking
	place := t.last[own.Namespace].Add(interval)
	if soonest := now.Add(max(askDelay, interval)); place.Before(soonest) {
		place = soonest
	}
	t.places[own.UID], t.last[own.Namespace] = place, place
	return place
}
