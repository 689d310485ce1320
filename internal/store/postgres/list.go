package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// listBegin is later than every request, and listEnd earlier.
var (
	listBegin = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	listEnd   = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
)

// List implements verification.Lister. Each phase is a range of an index, of which a page reads little more than its Limit.
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
		// All do, but those that have lapsed without being expired yet, and those of a number with another reference.
		if q.Selects(&r.Request, r.readAt) {
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
	arguments = []any{s.options.Project, after.CreatedAt, after.ID, since}
	if q.Deliveries && q.Phone.IsZero() {
		delivered := sqlListDelivered
		if q.Test {
			delivered = sqlListTestDelivered
		}
		return limitRows(delivered, q.Limit), append(arguments, q.Phase == "" || q.Phase == verification.Expired)
	}
	phases := []verification.Phase{verification.Pending, verification.Verified, verification.Expired}
	for _, phase := range phases {
		arguments = append(arguments, q.Phase == "" || q.Phase == phase)
	}
	all, referenced, found := sqlList, sqlListReference, sqlFind
	switch {
	case q.Test && q.Deliveries:
		found = sqlFindTestDelivered
	case q.Deliveries:
		found = sqlFindDelivered
	case q.Test:
		all, referenced, found = sqlListTest, sqlListTestReference, sqlFindTest
	}
	if forms := phone.Variants(q.Phone); len(forms) > 0 {
		otherForm := "" // no stored number is empty
		if len(forms) > 1 {
			otherForm = forms[1].E164()
		}
		return limitRows(found, q.Limit), append(arguments, forms[0].E164(), otherForm)
	}
	if q.Reference == "" {
		return limitRows(all, q.Limit), arguments
	}
	return limitRows(referenced, q.Limit), append(arguments, q.Reference)
}

// pageSizes are the limits that statements are made for. The limit is part of the text, because PostgreSQL would plan a statement with
// an unknown one anew for each page of a large table. They are few, because each is a prepared statement of every connection.
var pageSizes = [...]int{10, 50, 100, verification.MaxPage}

// limitRows returns the statement with a limit above that of the page.
func limitRows(statement string, limit int) string {
	size := slices.IndexFunc(pageSizes[:], func(size int) bool { return size >= min(limit, verification.MaxPage) })
	return strings.ReplaceAll(statement, "LIMIT "+longestPage, "LIMIT "+strconv.Itoa(pageSizes[size]+1))
}
