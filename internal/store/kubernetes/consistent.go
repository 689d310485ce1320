package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// snapshotOf selects objects by fields and labels.
type snapshotOf struct {
	fields, labels string
	// since is a revision that was current after the question was asked: the objects as of then will do. Empty for those
	// of now, which costs the API server a round of etcd's, and its cache up to a tenth of a second where nothing
	// happens to the kind.
	since string
}

// nothing is a selection by a name that no object has. The API server resolves it to one key and looks at no object.
var nothing = snapshotOf{fields: "metadata.name=phoneproof-now"}

// plainRest is how long a server that refused a WatchList is asked by LIST alone: long enough to cost nothing where it has
// none, and short enough that one odd answer, as of an API server amid its upgrade, is soon forgotten.
const plainRest = 5 * time.Minute

// streaming remembers whether the server has WatchList (on by default in 1.32 and from 1.34).
type streaming struct{ refusedAt atomic.Pointer[time.Time] }

func (s *streaming) refuse() { s.refusedAt.Store(new(time.Now())) }

func (s *streaming) refused() bool {
	at := s.refusedAt.Load()
	return at != nil && time.Since(*at) < plainRest
}

// snapshot returns the selected objects as they were at one moment after the call began, or after since.
//
// It is a watch that asks for the initial events and is closed after them: for sendInitialEvents without a
// resourceVersion the API server reads the current revision from etcd's quorum and waits until its own cache has
// reached it before it answers (KEP-3157), which is what makes the answer current and what an informer's own watch
// never promises. A server without WatchList is asked by a LIST without a resourceVersion, which means the same.
func (a *api) snapshot(ctx context.Context, of snapshotOf) ([]*entry, error) {
	found, _, err := a.snapshotAt(ctx, of)
	return found, err
}

// revision returns a resourceVersion that is not older than any write acknowledged before the call.
func (a *api) revision(ctx context.Context) (string, error) {
	_, version, err := a.snapshotAt(ctx, nothing)
	return version, err
}

func (a *api) snapshotAt(ctx context.Context, of snapshotOf) ([]*entry, string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if !a.streaming.refused() {
		found, version, err := a.stream(ctx, of)
		if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
			return found, version, classify("read requests", err)
		}
		a.streaming.refuse()
	}
	list := &objectList{}
	options := &metav1.ListOptions{FieldSelector: of.fields, LabelSelector: of.labels, ResourceVersion: of.since}
	if of.since != "" {
		options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	}
	err := a.client.Get().Namespace(a.namespace).Resource(resource).MaxRetries(0).
		VersionedParams(options, metav1.ParameterCodec).Do(ctx).Into(list)
	if err != nil {
		return nil, "", classify("read requests", err)
	}
	found := make([]*entry, len(list.Items))
	for i := range list.Items {
		found[i] = newEntry(&list.Items[i])
	}
	return found, list.ResourceVersion, nil
}

func (a *api) stream(ctx context.Context, of snapshotOf) ([]*entry, string, error) {
	events, err := a.client.Get().Namespace(a.namespace).Resource(resource).MaxRetries(0).
		VersionedParams(&metav1.ListOptions{
			FieldSelector: of.fields, LabelSelector: of.labels, Watch: true, AllowWatchBookmarks: true,
			SendInitialEvents: new(true), ResourceVersion: of.since, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
			TimeoutSeconds: new(int64(callTimeout.Seconds()) + 1),
		}, metav1.ParameterCodec).Watch(ctx)
	if err != nil {
		return nil, "", err
	}
	defer events.Stop()
	byName := make(map[string]*entry)
	for event := range events.ResultChan() {
		o, known := event.Object.(*object)
		switch {
		case event.Type == watch.Error:
			return nil, "", apierrors.FromObject(event.Object)
		case !known:
			return nil, "", fmt.Errorf("read requests: the watch sent a %T", event.Object)
		case event.Type == watch.Bookmark && o.Annotations[metav1.InitialEventsAnnotationKey] == "true":
			return values(byName), o.ResourceVersion, nil
		case event.Type == watch.Deleted:
			delete(byName, o.Name)
		case event.Type != watch.Bookmark:
			byName[o.Name] = newEntry(o)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	return nil, "", errors.New("the watch ended before its initial events did")
}

func values(byName map[string]*entry) []*entry {
	found := make([]*entry, 0, len(byName))
	for _, e := range byName {
		found = append(found, e)
	}
	return found
}
