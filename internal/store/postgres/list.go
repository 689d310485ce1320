package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// listBegin is later than every request, and listEnd earlier.
var (
	listBegin = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	listEnd   = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
)

// List implements verification.Lister. Each phase is a range of an index, of which a page reads no more than its Limit and one.
func (s *Store) List(ctx context.Context, q verification.ListQuery) (verification.ListPage, error) {
	statement, arguments := s.listStatement(q)
	var found []state
	err := s.inTransaction(ctx, func(c *pgx.Conn) error {
		rows, _ := c.Query(ctx, statement, arguments...) // rows holds the error, too
		var err error
		found, err = pgx.CollectRows(rows, newStateScanner().scan)
		return wrapStep("read page", err)
	})
	if err != nil {
		return verification.ListPage{}, fmt.Errorf("list requests: %w", err)
	}
	var page verification.ListPage
	if len(found) > q.Limit {
		found = found[:q.Limit]
		last := found[q.Limit-1]
		page.Next = verification.Position{CreatedAt: last.CreatedAt, ID: last.ID}
	}
	for _, r := range found {
		if q.Selects(&r.Request, r.readAt) { // all do, but those that have lapsed without being expired yet
			page.Requests = append(page.Requests, r.Request)
		}
	}
	return page, nil
}

// listStatement returns the statement for a query, with its arguments.
func (s *Store) listStatement(q verification.ListQuery) (statement string, arguments []any) {
	after, since := q.After, q.Since
	if after.IsZero() {
		after.CreatedAt = listBegin
	}
	if since.Before(listEnd) {
		since = listEnd
	}
	phases := []verification.Phase{verification.Pending, verification.Verified, verification.Expired}
	arguments = []any{s.options.Project, after.CreatedAt, after.ID, since, q.Limit + 1}
	for _, phase := range phases {
		arguments = append(arguments, q.Phase == "" || q.Phase == phase)
	}
	if q.Reference == "" {
		return sqlList, arguments
	}
	return sqlListReference, slices.Concat(arguments, []any{q.Reference})
}
