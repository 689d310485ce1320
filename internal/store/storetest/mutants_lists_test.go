package storetest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

func listMutants() []mutant {
	const (
		pages, filters, changes = "list requests newest first", "list requests by status", "list each request once"
		projects, attempts      = "list the requests of their own", "keep the last attempts"
		modes, numbers          = "let no place in a list of one mode", "find the requests of a number"
	)
	type listFunc = func(context.Context, verification.ListQuery) (verification.ListPage, error)
	faulty := func(bend func(s *faultyStore, inner listFunc) listFunc) func(environment) func(*faultyStore) {
		return perInstance(func(s *faultyStore) { s.list = bend(s, s.list) })
	}
	asking := func(change func(q *verification.ListQuery)) func(environment) func(*faultyStore) {
		return faulty(func(_ *faultyStore, inner listFunc) listFunc {
			return func(ctx context.Context, q verification.ListQuery) (verification.ListPage, error) {
				change(&q)
				return inner(ctx, q)
			}
		})
	}
	answering := func(change func(q verification.ListQuery, p *verification.ListPage)) func(environment) func(*faultyStore) {
		return faulty(func(_ *faultyStore, inner listFunc) listFunc {
			return func(ctx context.Context, q verification.ListQuery) (verification.ListPage, error) {
				page, err := inner(ctx, q)
				change(q, &page)
				return page, err
			}
		})
	}
	return []mutant{
		{"lists the oldest of a page first", []string{pages}, answering(func(_ verification.ListQuery, p *verification.ListPage) {
			slices.Reverse(p.Requests)
		})},
		{"skips the rest of those created at one time", []string{pages}, asking(func(q *verification.ListQuery) {
			if !q.After.IsZero() {
				q.After.ID = ""
			}
		})},
		{"begins a page with the last of the one before", []string{pages, changes}, asking(func(q *verification.ListQuery) {
			if !q.After.IsZero() {
				q.After.CreatedAt = q.After.CreatedAt.Add(time.Microsecond)
			}
		})},
		{"ends with a full page", []string{pages, changes}, answering(func(_ verification.ListQuery, p *verification.ListPage) {
			p.Next = verification.Position{}
		})},
		{"promises a page after the last", []string{pages}, answering(func(q verification.ListQuery, p *verification.ListPage) {
			if n := len(p.Requests); n == q.Limit && p.Next.IsZero() {
				p.Next = verification.Position{CreatedAt: p.Requests[n-1].CreatedAt, ID: p.Requests[n-1].ID}
			}
		})},
		{"cuts a page before it leaves out the other mode", []string{modes}, faulty(func(_ *faultyStore, inner listFunc) listFunc {
			return func(ctx context.Context, q verification.ListQuery) (verification.ListPage, error) {
				return cutBeforeModes(ctx, q, inner)
			}
		})},
		{"counts instead of keeping the place", []string{changes}, faulty(func(_ *faultyStore, inner listFunc) listFunc {
			return func(ctx context.Context, q verification.ListQuery) (verification.ListPage, error) {
				skip := q.After.CreatedAt.Sub(time.Time{}) // the place is a number
				limit := q.Limit
				q.After, q.Limit = verification.Position{}, verification.MaxPage
				page, err := inner(ctx, q)
				page.Requests = page.Requests[min(len(page.Requests), int(skip)):]
				page.Next = verification.Position{}
				if len(page.Requests) > limit {
					page.Requests = page.Requests[:limit]
					page.Next = verification.Position{CreatedAt: time.Time{}.Add(skip + time.Duration(limit)), ID: "place"}
				}
				return page, err
			}
		})},
		{"lists any status", []string{filters}, asking(func(q *verification.ListQuery) { q.Phase = "" })},
		{"lists what lapsed as pending", []string{filters}, faulty(func(_ *faultyStore, inner listFunc) listFunc {
			return func(ctx context.Context, q verification.ListQuery) (verification.ListPage, error) {
				phase := q.Phase
				q.Phase, q.Limit = "", verification.MaxPage
				page, err := inner(ctx, q)
				page.Requests = slices.DeleteFunc(page.Requests, func(r verification.Request) bool { return phase != "" && r.Phase != phase })
				return page, err
			}
		})},
		{"finds any number", []string{numbers}, asking(func(q *verification.ListQuery) { q.Phone = phone.Number{} })},
		{"finds a number in today's form alone", []string{numbers}, answering(func(q verification.ListQuery, p *verification.ListPage) {
			p.Requests = slices.DeleteFunc(p.Requests, func(r verification.Request) bool { return !q.Phone.IsZero() && r.Phone != phone.Canonical(q.Phone) })
		})},
		{"lists any reference", []string{filters}, asking(func(q *verification.ListQuery) { q.Reference = "" })},
		{"lists what was created before", []string{filters}, asking(func(q *verification.ListQuery) { q.Since = time.Time{} })},
		{"leaves out what was created at that very time", []string{filters}, asking(func(q *verification.ListQuery) {
			if !q.Since.IsZero() {
				q.Since = q.Since.Add(time.Microsecond)
			}
		})},
		{"lists the requests of all projects", []string{projects}, func(environment) func(*faultyStore) {
			var opened []*faultyStore
			return func(s *faultyStore) {
				inner := s.list
				opened = append(opened, s)
				s.list = func(ctx context.Context, q verification.ListQuery) (verification.ListPage, error) {
					page, err := inner(ctx, q)
					for _, other := range opened {
						if other.project != s.project {
							foreign, _ := other.inner.List(ctx, q)
							page.Requests = append(page.Requests, foreign.Requests...)
						}
					}
					return page, err
				}
			}
		}},
		{"lists for callers who have gone", []string{"list nothing for a caller"}, faulty(func(_ *faultyStore, inner listFunc) listFunc {
			return func(ctx context.Context, q verification.ListQuery) (verification.ListPage, error) {
				return inner(context.WithoutCancel(ctx), q)
			}
		})},
		{"forgets earlier attempts", []string{attempts}, perInstance(func(s *faultyStore) {
			s.changeAnswers(func(r *verification.Request) { r.EarlierAttempts = nil })
		})},
		{"keeps the oldest attempts", []string{attempts}, perInstance(func(s *faultyStore) {
			s.changeAnswers(func(r *verification.Request) { slices.Reverse(r.EarlierAttempts) })
		})},
		{"takes every attempt for one at the present event", []string{attempts}, perInstance(func(s *faultyStore) {
			s.changeAnswers(func(r *verification.Request) {
				for i := range r.EarlierAttempts {
					r.EarlierAttempts[i].Event = r.Event().Kind
				}
			})
		})},
		{"keeps the last attempt twice", []string{attempts, "keep no attempt"}, perInstance(func(s *faultyStore) {
			s.changeAnswers(func(r *verification.Request) {
				if past := r.PastAttempts(); len(past) > 0 {
					r.EarlierAttempts = append(slices.Clone(r.EarlierAttempts), past[0])
				}
			})
		})},
	}
}

// cutBeforeModes lists the requests of both modes, and leaves out those of the other one only then.
func cutBeforeModes(
	ctx context.Context, q verification.ListQuery, list func(context.Context, verification.ListQuery) (verification.ListPage, error),
) (verification.ListPage, error) {
	wanted, more := q.Test, false
	var all []verification.Request
	for _, test := range []bool{true, false} {
		q.Test = test
		page, err := list(ctx, q)
		if err != nil {
			return page, err
		}
		all, more = append(all, page.Requests...), more || !page.Next.IsZero()
	}
	slices.SortFunc(all, func(a, b verification.Request) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), strings.Compare(b.ID, a.ID))
	})
	var cut verification.ListPage
	if more || len(all) > q.Limit {
		all = all[:min(len(all), q.Limit)]
		last := all[len(all)-1]
		cut.Next = verification.Position{CreatedAt: last.CreatedAt, ID: last.ID}
	}
	cut.Requests = slices.DeleteFunc(all, func(r verification.Request) bool { return r.Test != wanted })
	return cut, nil
}
