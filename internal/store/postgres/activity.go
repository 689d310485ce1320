package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// sqlActivity reads the latest finished requests from their range of the index, up to a limit, and as many open ones. The first two rows
// sum up those that expired or were verified; each of the others has the contacts and hints of one that was not.
var sqlActivity = `WITH finished AS (
		SELECT method, phase, expires_at, verified_at, contacts, hints FROM phoneproof_requests
		WHERE project = $1 AND work = 3 AND since >= $3::timestamptz ORDER BY since DESC LIMIT $5
	), undelivered AS (
		SELECT method, verified_at, contacts, hints FROM phoneproof_requests WHERE project = $1 AND work = 2 LIMIT $5
	), pending AS (
		SELECT method, contacts, hints FROM phoneproof_requests WHERE project = $1 AND work = 1 LIMIT $5
	), attended AS (
		SELECT method, contacts, hints FROM phoneproof_requests WHERE project = $1 AND work = 4 LIMIT $5
	)
	SELECT count(*) FILTER (WHERE phase = 'EXPIRED' AND expires_at >= $4::timestamptz), max(verified_at), '', ''
		FROM finished WHERE method = $2
	UNION ALL SELECT 0, max(verified_at), '', '' FROM undelivered WHERE method = $2
	UNION ALL SELECT 0, NULL::timestamptz, contacts, hints FROM (
		SELECT method, contacts, hints FROM finished WHERE phase = 'EXPIRED'
		UNION ALL SELECT method, contacts, hints FROM undelivered WHERE verified_at IS NULL
		UNION ALL SELECT method, contacts, hints FROM pending
		UNION ALL SELECT method, contacts, hints FROM attended
	) AS unverified WHERE method = $2 AND (contacts <> '' OR hints <> '')`

// Activity implements verification.Counter. A message comes before its request is finished, so those that were finished earlier show
// nothing of the time since.
func (s *Store) Activity(ctx context.Context, m verification.Method, since time.Time) (verification.Activity, error) {
	var activity verification.Activity
	err := s.inTransaction(ctx, func(c *pgx.Conn) error {
		activity = verification.Activity{}
		rows, _ := c.Query(ctx, sqlActivity, s.options.Project, string(m), since, since.Add(-verification.ExpiryGrace),
			verification.MostCounted) // rows holds the error, too
		var (
			expired  int
			verified *time.Time
			contacts string
			hints    string
		)
		_, err := pgx.ForEachRow(rows, []any{&expired, &verified, &contacts, &hints}, func() error {
			bound, err := decodeContacts(contacts)
			if err != nil {
				return fmt.Errorf("contacts of a request: %w", err)
			}
			heard, err := decodeHints(hints)
			if err != nil {
				return fmt.Errorf("hints of a request: %w", err)
			}
			activity.Expired += expired
			activity.Hear(&verification.Request{VerifiedAt: timeOrZero(verified), Contacts: bound, Hints: heard}, since)
			return nil
		})
		return wrapStep("read activity", err)
	})
	if err != nil {
		return verification.Activity{}, fmt.Errorf("read activity of requests: %w", err)
	}
	return activity, nil
}
