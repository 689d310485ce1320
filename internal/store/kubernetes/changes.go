package kubernetes

import (
	"maps"
	"sync"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

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
