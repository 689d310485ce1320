package kubernetes

import (
	"context"
	"fmt"

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
