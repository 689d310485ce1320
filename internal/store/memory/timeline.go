package memory

import (
	"container/heap"
	"time"
)

// timeline orders records by time, the earliest first. Every record holds its own place, so it can be moved or removed in
// O(log n) without a search. The zero value is ready for use.
type timeline []*place

// place is the position of a record in at most one timeline.
type place struct {
	record *record
	at     int64 // in microseconds since 1970
	line   *timeline
	index  int
}

// move moves the record to a timeline at that time, from any other or none.
func (p *place) move(to *timeline, at time.Time) {
	// Rounded up, so that no record is due before its last nanosecond.
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

// leave removes the record from its timeline, if it is in one.
func (p *place) leave() {
	if p.line != nil {
		heap.Remove(p.line, p.index)
		p.line = nil
	}
}

// firstDue returns the earliest record if its time has come, otherwise nil.
func (t timeline) firstDue(now time.Time) *record {
	if len(t) == 0 || t[0].at > now.UnixMicro() {
		return nil
	}
	return t[0].record
}

// Len implements heap.Interface.
func (t timeline) Len() int { return len(t) }

// Less implements heap.Interface. Records of equal time are ordered by creation.
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
	(*t)[last] = nil // releases the record: the array outlives it
	*t = (*t)[:last]
	return p
}
