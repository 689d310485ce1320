package verification

import "sync"

// Notifier notifies subscribers of changes of requests. One per store serves every long poll of the process; a store calls
// Notify for each change that it makes or learns of. The zero value is ready.
type Notifier struct {
	mu   sync.Mutex
	subs map[string]map[chan struct{}]struct{}
}

// Subscribe implements Store.Subscribe. cancel may be called more than once.
func (n *Notifier) Subscribe(id string) (<-chan struct{}, func()) {
	// One buffered value coalesces any number of changes: the subscriber reads the state, not the event.
	ch := make(chan struct{}, 1)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.subs == nil {
		n.subs = make(map[string]map[chan struct{}]struct{})
	}
	if n.subs[id] == nil {
		n.subs[id] = make(map[chan struct{}]struct{})
	}
	n.subs[id][ch] = struct{}{}
	return ch, func() { n.unsubscribe(id, ch) }
}

func (n *Notifier) unsubscribe(id string, ch chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.subs[id], ch)
	if len(n.subs[id]) == 0 {
		delete(n.subs, id)
	}
}

// Notify wakes the subscribers of id. It never blocks.
func (n *Notifier) Notify(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for ch := range n.subs[id] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
