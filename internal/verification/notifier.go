package verification

import (
	"slices"
	"sync"
)

// Notifier notifies subscribers of changes of requests. One per store serves every long poll of the process; a store calls
// Notify for each change that it makes or learns of. The zero value is ready.
type Notifier struct {
	mu   sync.Mutex
	subs map[string][]chan struct{}
}

// Subscribe implements Store.Subscribe. cancel may be called more than once.
func (n *Notifier) Subscribe(id string) (<-chan struct{}, func()) {
	// One buffered value coalesces any number of changes: the subscriber reads the state, not the event.
	ch := make(chan struct{}, 1)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.subs == nil {
		n.subs = make(map[string][]chan struct{})
	}
	n.subs[id] = append(n.subs[id], ch) // mostly one: a map for each id would use more memory than all else here
	return ch, func() { n.unsubscribe(id, ch) }
}

func (n *Notifier) unsubscribe(id string, ch chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	left := slices.DeleteFunc(n.subs[id], func(other chan struct{}) bool { return other == ch })
	if len(left) == 0 {
		delete(n.subs, id)
		return
	}
	n.subs[id] = left
}

// Notify wakes the subscribers of id. It never blocks.
func (n *Notifier) Notify(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, ch := range n.subs[id] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
