package project

import (
	"context"
	"fmt"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/phoneproof/phoneproof/internal/apply"
)

// turns lets a few Deployments get new pods at a time. Who has a turn is read from the Deployments themselves, so it holds
// over restarts and changes of leaders; remembered are only the turns that the cache does not show yet.
type turns struct {
	mu    sync.Mutex
	taken map[types.UID]int64 // by the Deployment's UID: its generation before the change
}

// take takes a turn for a Deployment, and tells whether there was one.
func (t *turns) take(ctx context.Context, reader client.Reader, own *appsv1.Deployment, limit int) (bool, error) {
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
	if !mayRoll(ours, t.taken, own.UID, limit) {
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

// mayRoll tells whether one more Deployment may get new pods, while those that were taken have a turn. Deployments that are
// stuck had their time, and those that are paused have as much as they like: were they counted, a few projects would hold up
// all the others.
func mayRoll(all []appsv1.Deployment, taken map[types.UID]int64, own types.UID, limit int) bool {
	under := 0
	for i := range all {
		_, turn := taken[all[i].UID]
		if turn || underway(&all[i]) {
			if all[i].UID == own {
				return true // it has its turn already
			}
			under++
		}
	}
	return under < limit
}
