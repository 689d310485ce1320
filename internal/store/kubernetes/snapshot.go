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

// selection selects objects by fields and labels.
type selection struct {
	fields, labels string
	// since is a revision that was current after the call began, which is recent enough. Empty for the present, which costs
	// the API server a quorum read of etcd, and its cache up to a tenth of a second if nothing happens to the kind.
	since string
}

// selectNothing selects a name that no object has. The API server resolves it to one key and reads no object.
var selectNothing = selection{fields: "metadata.name=phoneproof-now"}

// watchListRetryAfter is how long LIST is used after a server refused a WatchList: long enough to cost nothing if it has none,
// short enough for one odd answer, as from an API server amid its upgrade.
const watchListRetryAfter = 5 * time.Minute

// watchListSupport remembers whether the server has WatchList (on by default in 1.32 and from 1.34).
type watchListSupport struct{ refusedAt atomic.Pointer[time.Time] }

func (s *watchListSupport) recordRefusal() { s.refusedAt.Store(new(time.Now())) }

func (s *watchListSupport) wasRefused() bool {
	at := s.refusedAt.Load()
	return at != nil && time.Since(*at) < watchListRetryAfter
}

// readSnapshot returns the selected objects as they were at one moment after the call began, or after since, and the
// resourceVersion of that moment, which is not older than any write acknowledged before the call.
//
// It is a watch that requests the initial events and is closed after them. For sendInitialEvents without a resourceVersion the
// API server reads the current revision from etcd's quorum and waits until its cache has reached it (KEP-3157), so the answer
// is current, which an informer's own watch never promises. Without WatchList, a LIST without a resourceVersion means the same.
func (a *api) readSnapshot(ctx context.Context, of selection) ([]*entry, string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if !a.watchList.wasRefused() {
		found, version, err := a.streamSnapshot(ctx, of)
		if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
			return found, version, classifyError("read requests", err)
		}
		a.watchList.recordRefusal()
	}
	list := &rawObjectList{}
	options := &metav1.ListOptions{FieldSelector: of.fields, LabelSelector: of.labels, ResourceVersion: of.since}
	if of.since != "" {
		options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	}
	err := a.client.Get().Namespace(a.namespace).Resource(resourceName).MaxRetries(0).
		VersionedParams(options, metav1.ParameterCodec).Do(ctx).Into(list)
	if err != nil {
		return nil, "", classifyError("read requests", err)
	}
	found := make([]*entry, len(list.Items))
	for i := range list.Items {
		found[i] = newEntry(&list.Items[i])
	}
	return found, list.ResourceVersion, nil
}

func (a *api) streamSnapshot(ctx context.Context, of selection) ([]*entry, string, error) {
	events, err := a.client.Get().Namespace(a.namespace).Resource(resourceName).MaxRetries(0).
		VersionedParams(&metav1.ListOptions{
			FieldSelector: of.fields, LabelSelector: of.labels, Watch: true, AllowWatchBookmarks: true,
			SendInitialEvents: new(true), ResourceVersion: of.since, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
			TimeoutSeconds: new(int64(callTimeout.Seconds()) + 1),
		}, metav1.ParameterCodec).Watch(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("watch: %w", err)
	}
	defer events.Stop()
	byName := make(map[string]*entry)
	for event := range events.ResultChan() {
		o, known := event.Object.(*rawObject)
		switch {
		case event.Type == watch.Error:
			return nil, "", fmt.Errorf("watch: %w", apierrors.FromObject(event.Object))
		case !known:
			return nil, "", fmt.Errorf("read requests: the watch sent a %T", event.Object)
		case event.Type == watch.Bookmark && o.Annotations[metav1.InitialEventsAnnotationKey] == "true":
			return entriesOf(byName), o.ResourceVersion, nil
		case event.Type == watch.Deleted:
			delete(byName, o.Name)
		case event.Type != watch.Bookmark:
			byName[o.Name] = newEntry(o)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, "", fmt.Errorf("wait for the initial events: %w", err)
	}
	return nil, "", errors.New("the watch ended before its initial events did")
}

func entriesOf(byName map[string]*entry) []*entry {
	found := make([]*entry, 0, len(byName))
	for _, e := range byName {
		found = append(found, e)
	}
	return found
}
