package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// The indexes of the informer.
const (
	byBinding = "binding"
	byCode    = "code"
)

// newInformer returns an informer of the project's objects. It lists once, as a stream where the server has WatchList,
// and watches from then on. It never resyncs: nothing here is driven by repetition.
func newInformer(a *api) (cache.SharedIndexInformer, error) {
	informer := cache.NewSharedIndexInformerWithOptions(a.listWatch(), &rawObject{}, cache.SharedIndexInformerOptions{
		ObjectDescription: resourceName + " of " + a.namespace + "/" + a.project,
		Indexers:          cache.Indexers{byBinding: bindingsOf, byCode: codesOf},
	})
	if err := informer.SetTransform(toEntry); err != nil {
		return nil, fmt.Errorf("make informer: %w", err)
	}
	return informer, nil
}

func (a *api) listWatch() cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = a.fieldSelector()
			list := &rawObjectList{}
			return list, a.client.Get().Namespace(a.namespace).Resource(resourceName).
				VersionedParams(&o, metav1.ParameterCodec).Do(ctx).Into(list)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector, o.Watch = a.fieldSelector(), true
			return a.client.Get().Namespace(a.namespace).Resource(resourceName).
				VersionedParams(&o, metav1.ParameterCodec).Watch(ctx)
		},
	}
}

// transform reads an object when it arrives, so that its raw form is never held. It must accept what it returned.
func toEntry(item any) (any, error) {
	if o, raw := item.(*rawObject); raw {
		return newEntry(o), nil
	}
	return item, nil
}

// bindingsOf and codesOf are called by the informer with whatever it holds and must not panic.
func bindingsOf(item any) ([]string, error) {
	e, known := item.(*entry)
	if !known || e.kind != KindRequest {
		return nil, nil
	}
	return e.request.SharingBindings(), nil
}

func codesOf(item any) ([]string, error) {
	e, known := item.(*entry)
	if !known || e.Labels[verifyv1.CodeIDLabel] == "" {
		return nil, nil
	}
	return []string{e.Labels[verifyv1.CodeIDLabel]}, nil
}

// entryOf returns the entry that an informer's handler was called with, also for a deletion that the watch missed.
func entryOf(item any) *entry {
	if missed, is := item.(cache.DeletedFinalStateUnknown); is {
		item = missed.Obj
	}
	e, _ := item.(*entry)
	return e
}

// Change is a change of one object of the project.
type Change struct {
	// ID is the object's name and, where Kind is KindRequest, the request's id.
	ID   string
	Kind Kind
}

func (e *entry) toChange() Change { return Change{ID: e.Name, Kind: e.kind} }

// codeOf returns the id that a code leads to, if that is not the name.
func codeOf(e *entry) string { return e.Labels[verifyv1.CodeIDLabel] }

// changeFeed calls its listeners with every change. The zero value is ready.
type changeFeed struct {
	mu        sync.Mutex
	next      int
	listeners map[int]func(Change)
}

func (f *changeFeed) addListener(listener func(Change)) (stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listeners == nil {
		f.listeners = make(map[int]func(Change))
	}
	f.next++
	number := f.next
	f.listeners[number] = listener
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.listeners, number)
	}
}

func (f *changeFeed) notifyListeners(c Change) {
	f.mu.Lock()
	listeners := maps.Clone(f.listeners)
	f.mu.Unlock()
	for _, listener := range listeners {
		listener(c)
	}
}

// Watch calls listener with every change that the watch brings from now on, until stop is called: from the informer, in order.
// listener must return at once, as the Add of a workqueue does. Objects from before are in All, so a term calls Watch first
// and then All.
func (s *Store) Watch(listener func(Change)) (stop func()) { return s.changes.addListener(listener) }

// All returns every object of the project that the informer knows, without a call of the API server.
func (s *Store) All() []Change {
	items := s.informer.GetStore().List()
	changes := make([]Change, 0, len(items))
	for _, item := range items {
		if e := entryOf(item); e != nil {
			changes = append(changes, e.toChange())
		}
	}
	return changes
}
