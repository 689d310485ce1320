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
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/phoneproof/phoneproof/internal/apply"
)

// maxRolloutTime is how long a rollout counts. New pods have as much time to become ready, but whoever edits a project again
// and again would have that time anew.
const maxRolloutTime = 10 * time.Minute

// turns lets a few Deployments get new pods at a time. Who has a turn is read from the Deployments themselves, so it holds
// over restarts and changes of leaders; remembered are the turns that the cache does not show yet, and since when each rollout
// is seen.
type turns struct {
	mu    sync.Mutex
	taken map[types.UID]int64     // by the Deployment's UID: its generation before the change
	since map[types.UID]time.Time // by the Deployment's UID
}

// take takes a turn for a Deployment, and reports whether there was one.
func (t *turns) take(ctx context.Context, reader client.Reader, own *appsv1.Deployment, limit int, now time.Time) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	// Read under the lock: what was read before another took its turn would not show it, and neither would the memory.
	var all appsv1.DeploymentList
	if err := reader.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list Deployments: %w", err)
	}
	// A Deployment that is no project's takes no turn, whatever its labels.
	ours := slices.DeleteFunc(all.Items, func(d appsv1.Deployment) bool { return projectOf(&d) == nil })
	t.forget(ours)
	t.follow(ours, now)
	if !t.mayRoll(ours, own, limit, now) {
		return false, nil
	}
	if t.taken == nil {
		t.taken = map[types.UID]int64{}
	}
	t.taken[own.UID] = own.Generation
	return true, nil
}

// giveBack returns a turn that was not used.
func (t *turns) giveBack(own types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.taken, own)
}

// forget drops the turns that are to be seen, or are over.
func (t *turns) forget(all []appsv1.Deployment) {
	unseen := map[types.UID]int64{}
	for i := range all {
		if before, ok := t.taken[all[i].UID]; ok && all[i].Generation <= before {
			unseen[all[i].UID] = before
		}
	}
	t.taken = unseen
}

// follow notes since when each rollout is under way.
func (t *turns) follow(all []appsv1.Deployment, now time.Time) {
	since := map[types.UID]time.Time{}
	for i := range all {
		if !t.rolls(&all[i]) {
			continue
		}
		first, ok := t.since[all[i].UID]
		if !ok {
			first = now
		}
		since[all[i].UID] = first
	}
	t.since = since
}

// rolls reports whether a Deployment gets new pods now, or is about to.
func (t *turns) rolls(d *appsv1.Deployment) bool {
	_, turn := t.taken[d.UID]
	return turn || underway(d)
}

// mayRoll reports whether one more Deployment may get new pods. A namespace has a share of the turns, and what it does beyond
// that, or for too long, does not count: a few projects would hold up all the others. Deployments that are stuck had their
// time, and those that are paused have as much as they like.
func (t *turns) mayRoll(all []appsv1.Deployment, own *appsv1.Deployment, limit int, now time.Time) bool {
	counts := map[string]int{own.Namespace: 0}
	for i := range all {
		d := &all[i]
		counts[d.Namespace] += 0 // its namespace has a share, whether it uses it or not
		if !t.rolls(d) {
			continue
		}
		if d.UID == own.UID {
			return true // it has its turn already
		}
		if now.Sub(t.since[d.UID]) < maxRolloutTime {
			counts[d.Namespace]++
		}
	}
	share := shareOf(limit, len(counts))
	under := 0
	for _, n := range counts {
		under += min(n, share)
	}
	return counts[own.Namespace] < share && under < limit
}

// shareOf returns how many turns one of some namespaces may have: as many as the others, and never less than a quarter of all,
// so that one with many projects is not held up by many with few.
func shareOf(limit, namespaces int) int {
	const most = 4
	parts := min(namespaces, most)
	return (limit + parts - 1) / parts
}

// meddled tells whether somebody else set a field of the pods that a Deployment makes.
func meddled(deployment *appsv1.Deployment) bool {
	for _, entry := range deployment.ManagedFields {
		if entry.Manager == string(apply.FieldOwner) || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		var set fieldpath.Set
		if set.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
			continue // what cannot be read is the API server's to mend
		}
		pods := &set
		for _, name := range []string{"spec", "template", "spec"} {
			pods = pods.WithPrefix(fieldpath.PathElement{FieldName: &name})
		}
		if !pods.Empty() {
			return true
		}
	}
	return false
}
