package memory

import (
	"container/heap"
	"time"
)

// timeline orders records by time, the earliest first. Every record holds its own place, so it can be moved or taken
// out in O(log n) without a search. The zero value is ready.
type timeline []*place

// place is where a record stands: in at most one timeline.
type place struct {
	record *record
	at     int64 // in microseconds since 1970
	line   *timeline
	index  int
}

// move puts the record into a timeline at that time, from wherever it was.
func (p *place) move(to *timeline, at time.Time) {
	// Rounded up, so that what is not due by the last nanosecond is not taken for due by the microsecond.
	micros := at.Add(time.Microsecond - 1).UnixMicro()
	if p.line != to {
		p.leave()
		p.at, p.line = micros, to
		heap.Push(to, p)
		return
	}
	p.at = micros
	heap.Fix(to, p.index)
}

// leave takes the record out of its timeline, if it is in one.
func (p *place) leave() {
	if p.line != nil {
		heap.Remove(p.line, p.index)
		p.line = nil
	}
}

// first returns the earliest record if its time has come, else nil.
func (t timeline) first(now time.Time) *record {
	if len(t) == 0 || t[0].at > now.UnixMicro() {
		return nil
	}
	return t[0].record
}

// Len implements heap.Interface.
func (t timeline) Len() int { return len(t) }

// Less implements heap.Interface. Of equal times the one that was created first comes first.
func (t timeline) Less(i, j int) bool {
	if t[i].at != t[j].at {
		return t[i].at < t[j].at
	}
	return t[i].record.number < t[j].record.number
}

// Swap implements heap.Interface.
func (t timeline) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].index, t[j].index = i, j
}

// Push implements heap.Interface.
func (t *timeline) Push(x any) {
	p := x.(*place) //nolint:forcetypeassert // only place.move pushes
	p.index = len(*t)
	*t = append(*t, p)
}

// Pop implements heap.Interface.
func (t *timeline) Pop() any {
	last := len(*t) - 1
	p := (*t)[last]
	(*t)[last] = nil // the array outlives the record
	*t = (*t)[:last]
	return p
}
