package boundedhttp

import (
	"container/list"
	"context"
	"sync"
)

// heldShare is the part of the connections that held requests may use, as a divisor.
const heldShare = 2

// HoldLimiter limits the requests of a server that are held until something happens, such as long polls and open pages, to half of
// its connections, so that a short request always finds one. It counts memory, in connections of ConnectionCost.
type HoldLimiter struct {
	most int

	mu       sync.Mutex
	used     int
	yielding list.List // of *Hold, the oldest first
	yields   int       // what those in yielding use
}

// Hold is the slot of a held request.
type Hold struct {
	limiter     *HoldLimiter
	connections int
	// lost is closed when another request takes the slot; nil if none may.
	lost  chan struct{}
	place *list.Element // in limiter.yielding
	freed bool
}

// NewHoldLimiter returns the limiter of a server whose connections may use that budget, in bytes.
func NewHoldLimiter(budget int64) *HoldLimiter {
	return &HoldLimiter{most: int(budget / ConnectionCost / heldShare)}
}

// Most returns how many connections of ConnectionCost may be held at once.
func (l *HoldLimiter) Most() int { return l.most }

// ConnectionsOf returns as how many connections that of a request counts: several if it has a long header or a chunked body.
func ConnectionsOf(ctx context.Context) int {
	c, ok := ctx.Value(connKey{}).(*conn)
	if !ok {
		return 1
	}
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	return int((c.seat.cost + ConnectionCost - 1) / ConnectionCost)
}

// Acquire returns a slot for a request that counts as that many connections; nil if none is free. A request that does not yield
// takes the slots of those that do, the oldest first.
func (l *HoldLimiter) Acquire(connections int, yields bool) *Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	most := l.most
	if !yields {
		most += l.yields
	}
	if l.used+connections > most {
		return nil
	}
	for l.used+connections > l.most {
		l.yielding.Front().Value.(*Hold).revoke() //nolint:forcetypeassert // the list holds nothing else
	}
	h := &Hold{limiter: l, connections: connections}
	l.used += connections
	if yields {
		h.lost, h.place = make(chan struct{}), l.yielding.PushBack(h)
		l.yields += connections
	}
	return h
}

// Lost returns the channel that is closed when another request has taken the slot.
func (h *Hold) Lost() <-chan struct{} { return h.lost }

// Release frees the slot, unless it was lost.
func (h *Hold) Release() {
	h.limiter.mu.Lock()
	defer h.limiter.mu.Unlock()
	h.free()
}

// Revoke takes the slot away from a request that yields.
func (h *Hold) Revoke() {
	h.limiter.mu.Lock()
	defer h.limiter.mu.Unlock()
	h.revoke()
}

func (h *Hold) revoke() {
	if !h.freed {
		close(h.lost)
	}
	h.free()
}

func (h *Hold) free() {
	if h.freed {
		return
	}
	h.freed = true
	h.limiter.used -= h.connections
	if h.place != nil {
		h.limiter.yielding.Remove(h.place)
		h.limiter.yields -= h.connections
	}
}
