package project

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// rollouts are turns, with the Deployments that they read.
type rollouts struct {
	turns

	limit  int
	now    time.Time
	reader *indexedReader
	all    []*appsv1.Deployment
}

// newRollouts returns Deployments in these states, each in the namespace that a digit names.
func newRollouts(ctx context.Context, limit int, namespaces string, states ...rollout) *rollouts {
	r := &rollouts{limit: limit, now: time.Unix(1_800_000_000, 0), reader: newIndexedReader(ctx)}
	for i, state := range states {
		name := string(rune('a' + i))
		d := pods(state, 1)
		d.UID, d.Namespace, d.Name = types.UID(name), namespaces[i:i+1], name
		d.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(
			newProject(d.Namespace, name), verifyv1.GroupVersion.WithKind(verifyv1.VerificationProjectKind))}
		r.reader.addObjects(d)
		r.all = append(r.all, d)
	}
	return r
}

// expect checks whether a Deployment gets a turn.
func (r *rollouts) expect(t *testing.T, i int, want bool, why string) {
	t.Helper()
	delay, err := r.takeTurn(t.Context(), r.reader, r.all[i], r.limit, r.now)
	if err != nil || (delay == 0) != want {
		t.Errorf("%s: asks again after %s, %v; want a turn: %t", why, delay, err, want)
	}
}

func TestTurns(t *testing.T) {
	for name, c := range map[string]struct {
		limit      int
		namespaces string
		states     []rollout // the last one asks
		want       bool
	}{
		"none is taken":                           {2, "111", []rollout{rolledOut, rolledOut, rolledOut}, true},
		"one is left":                             {2, "111", []rollout{rolling, rolledOut, rolledOut}, true},
		"none is left":                            {2, "111", []rollout{rolling, unseen, rolledOut}, false},
		"it gets new pods already":                {2, "111", []rollout{rolling, rolling, rolling}, true},
		"those that are stuck do not count":       {2, "1111", []rollout{stuck, stuck, rolling, rolledOut}, true},
		"what is beyond a share does not count":   {2, "111112", []rollout{rolling, rolling, rolling, rolling, rolling, rolledOut}, true},
		"its namespace has its share":             {2, "121", []rollout{rolling, rolledOut, rolledOut}, false},
		"others have all":                         {2, "123", []rollout{rolling, rolling, rolledOut}, false},
		"a share is a quarter at least":           {10, "2345611", []rollout{rolledOut, rolledOut, rolledOut, rolledOut, rolling, rolling, rolledOut}, true},
		"and no more among four":                  {10, "2341111", []rollout{rolledOut, rolledOut, rolledOut, rolling, rolling, rolling, rolledOut}, false},
		"one namespace has all":                   {4, "1111", []rollout{rolling, rolling, rolling, rolledOut}, true},
		"one is enough for the share of a fourth": {1, "1234", []rollout{rolledOut, rolledOut, rolledOut, rolledOut}, true},
	} {
		t.Run(name, func(t *testing.T) {
			newRollouts(t.Context(), c.limit, c.namespaces, c.states...).expect(t, len(c.states)-1, c.want, "the last one")
		})
	}
}

func TestTurns_end(t *testing.T) {
	const editor, b, c, d, other = 0, 1, 2, 3, 4
	r := newRollouts(t.Context(), 1, "11111", rolling, rolledOut, rolledOut, rolledOut, rolledOut)
	r.expect(t, b, false, "another rollout is in progress")
	r.all[editor].Generation, r.all[editor].Status.ObservedGeneration = 9, 9
	r.now = r.now.Add(maxRolloutTime - time.Second)
	r.expect(t, b, false, "it may take ten minutes, although it was edited")
	r.now = r.now.Add(time.Second)
	r.expect(t, b, true, "but no longer")
	r.expect(t, b, true, "it has one already")

	r.expect(t, c, false, "the cache does not show the rollout that begins")
	r.all[b].Generation++
	r.giveBack(r.all[b])
	r.expect(t, c, false, "it is in progress, so it is not given back")
	r.all[b].Status.ObservedGeneration++
	r.expect(t, c, true, "it is complete")
	r.giveBack(r.all[c])
	r.all[other].Generation++
	r.expect(t, other, true, "to apply what changes nothing, while its project's own change rolls")
	r.giveBack(r.all[other])
	r.expect(t, d, true, "turns were given back, and a project's own change takes none")
	r.reader.removeKind(&appsv1.Deployment{})
	r.expect(t, c, true, "a deleted Deployment has none")
}

func TestTurns_places(t *testing.T) {
	turns := turns{places: map[types.UID]time.Time{}, last: map[string]time.Time{}}
	now := time.Unix(1_800_000_000, 0)
	for _, step := range []struct {
		after     time.Duration // the step before
		namespace string
		project   types.UID
		want      time.Duration
		why       string
	}{
		{0, "shop", "a", askDelay, "the first one"},
		{0, "shop", "b", askDelay + askInterval, "the next one"},
		{0, "shop", "a", askDelay, "an event of its own delays neither it nor the others"},
		{0, "shop", "c", askDelay + 2*askInterval, "the third one"},
		{0, "bank", "d", askDelay, "another namespace waits behind none of these"},
		{0, "bank", "e", askDelay + askInterval, "but behind its own"},
		{askDelay, "shop", "a", askDelay, "it has asked, and waits again"},
		{0, "shop", "b", askInterval, "its place is kept"},
		{0, "bank", "d", askDelay, "so has this one"},
		{time.Hour, "shop", "b", askDelay, "all have asked long ago"},
	} {
		now = now.Add(step.after)
		own := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: step.namespace, UID: step.project}}
		if got := turns.findPlace(own, now).Sub(now); got != step.want {
			t.Errorf("%s in %s asks again after %s, want %s: %s", step.project, step.namespace, got, step.want, step.why)
		}
	}
}

// Attacks waiting that costs more, or takes unequally long, the more projects of the more namespaces wait.
func TestTurns_places_many(t *testing.T) {
	const namespaces, crowd, period = 300, 300, 5 * time.Minute
	turns := turns{places: map[types.UID]time.Time{}, last: map[string]time.Time{}}
	var all []*appsv1.Deployment
	for i := range namespaces + crowd {
		own := metav1.ObjectMeta{Namespace: strconv.Itoa(min(i, namespaces)), UID: types.UID(strconv.Itoa(i))}
		all = append(all, &appsv1.Deployment{ObjectMeta: own})
	}
	asked := map[string]int{}
	asks := 0
	start := time.Unix(1_800_000_000, 0)
	for now := start; now.Sub(start) < period; now = now.Add(time.Second) {
		for _, own := range all {
			if place := turns.places[own.UID]; place.After(now) {
				continue
			} else if !place.IsZero() {
				asks++
				asked[own.Namespace]++
			}
			turns.findPlace(own, now)
		}
	}
	if most := maxAsking * int(period/askInterval); asks > most || asks < most/2 {
		t.Errorf("they asked %d times in %s, want at most %d", asks, period, most)
	}
	counts := slices.Collect(maps.Values(asked))
	if least, most := slices.Min(counts), slices.Max(counts); len(counts) != namespaces+1 || most > 2*least {
		t.Errorf("%d namespaces asked %d to %d times each", len(counts), least, most)
	}
}
