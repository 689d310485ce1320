package verification

import (
	"cmp"
	"container/heap"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/phone"
)

// MaxPage is the largest Limit of a ListQuery.
const MaxPage = 200

// Lister lists stored requests.
type Lister interface {
	// List returns the next page of the requests that the filter selects, newest first by (CreatedAt, ID). What one page costs does
	// not depend on how many pages there are before it, but with Phone on how many requests the number has. A walk from the beginning
	// until Next is zero returns each request once that the filter selects all the time, whatever is created, changed and deleted
	// meanwhile. A state may be as old as one of ReadCached.
	List(ctx context.Context, q ListQuery) (ListPage, error)
}

// ListFilter selects requests. Its zero value selects all but those of test keys and deliveries.
type ListFilter struct {
	// Phase selects the requests that are shown in that phase; empty for all. One that has lapsed is listed as Expired once a loop
	// has written that, and no longer as Pending.
	Phase Phase
	// Reference selects those with that ClientData.Reference; empty for all. In a database it finds none that a version stored
	// which did not know it.
	Reference string
	// Phone selects those with that claimed number, in whichever form of its line; zero for all. What a messenger reported as
	// Actual is a form of the same line.
	Phone phone.Number
	// Test selects the requests of test keys; otherwise all but these.
	Test bool
	// Deliveries selects the deliveries of that mode; otherwise all but these.
	Deliveries bool
	// Since selects those that were created at that time or later; zero for all.
	Since time.Time
}

// Selects reports whether the filter selects a request at now.
func (f ListFilter) Selects(r *Request, now time.Time) bool {
	return f.Test == r.Test && f.Deliveries == r.IsDelivery() && (f.Phase == "" || f.Phase == r.Phase && f.Phase == r.PhaseAt(now)) &&
		(f.Reference == "" || f.Reference == r.Reference) && !r.CreatedAt.Before(f.Since) &&
		(f.Phone.IsZero() || phone.Same(f.Phone, r.Phone))
}

// Position is the place of a request in a list. Its zero value is before all.
type Position struct {
	CreatedAt time.Time
	ID        string
}

// IsZero reports whether the position is the beginning.
func (p Position) IsZero() bool { return p.CreatedAt.IsZero() && p.ID == "" }

// isBefore reports whether p comes before other in a list: what is newer comes first.
func (p Position) isBefore(other Position) bool {
	return cmp.Or(other.CreatedAt.Compare(p.CreatedAt), strings.Compare(other.ID, p.ID)) < 0
}

// ListQuery asks for a page.
type ListQuery struct {
	ListFilter

	// After is the Next of the page before; zero for the first page.
	After Position
	// Limit is from 1 to MaxPage.
	Limit int
}

// ListPage is a part of a list. It may have fewer requests than Limit, or none, although others follow.
type ListPage struct {
	Requests []Request
	// Next is where the next page begins; zero if this is the last.
	Next Position
}

// Listing collects a page from a scan of all stored requests, in any order.
type Listing struct {
	query ListQuery
	now   time.Time
	found oldestFirst
}

// NewListing returns a listing for the requests as they are at now.
func NewListing(q ListQuery, now time.Time) *Listing { return &Listing{query: q, now: now} }

// Add considers a request, which must not change until Page returns.
func (l *Listing) Add(r *Request) {
	at := r.position()
	if !l.query.After.IsZero() && !l.query.After.isBefore(at) || !l.query.Selects(r, l.now) {
		return
	}
	switch {
	case len(l.found) <= l.query.Limit: // one more than the page has shows that it is not the last
		heap.Push(&l.found, r)
	case at.isBefore(l.found[0].position()):
		l.found[0] = r
		heap.Fix(&l.found, 0)
	}
}

// Page returns the page, with copies of the requests.
func (l *Listing) Page() ListPage {
	slices.SortFunc(l.found, func(a, b *Request) int {
		if a.position().isBefore(b.position()) {
			return -1
		}
		return 1
	})
	var page ListPage
	if len(l.found) > l.query.Limit {
		l.found = l.found[:l.query.Limit]
		page.Next = l.found[l.query.Limit-1].position()
	}
	for _, r := range l.found {
		page.Requests = append(page.Requests, r.Clone())
	}
	return page
}

func (r *Request) position() Position { return Position{CreatedAt: r.CreatedAt, ID: r.ID} }

// oldestFirst is a heap of requests with the last one of a list on top.
type oldestFirst []*Request

func (h oldestFirst) Len() int           { return len(h) }
func (h oldestFirst) Less(i, j int) bool { return h[j].position().isBefore(h[i].position()) }
func (h oldestFirst) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *oldestFirst) Push(r any) { *h = append(*h, r.(*Request)) } //nolint:forcetypeassert // Add pushes nothing else

// Pop implements heap.Interface.
func (h *oldestFirst) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
