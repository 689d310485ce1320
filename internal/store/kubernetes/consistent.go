package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// snapshotOf selects objects by fields and labels.
type snapshotOf struct {
	fields, labels string
}

// nothing is a selection by a name that no object has. The API server resolves it to one key and looks at no object.
var nothing = snapshotOf{fields: "metadata.name=phoneproof-now"}

// streaming remembers whether the server has WatchList (on by default in 1.32 and from 1.34).
type streaming struct{ refused atomic.Bool }

// snapshot returns the selected objects as they were at one moment after the call began.
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
	if !a.streaming.refused.Load() {
		found, version, err := a.stream(ctx, of)
		if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
			return found, version, classify("read requests", err)
		}
		a.streaming.refused.Store(true)
	}
	list := &objectList{}
	err := a.client.Get().Namespace(a.namespace).Resource(resource).MaxRetries(0).
		VersionedParams(&metav1.ListOptions{FieldSelector: of.fields, LabelSelector: of.labels}, metav1.ParameterCodec).
		Do(ctx).Into(list)
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
			SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
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
