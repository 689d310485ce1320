package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// sqlActivity reads the latest finished requests from their range of the index, up to a limit, and as many open ones. The first two rows
// sum up those that expired or were verified; each of the others has the contacts of one that was not.
var sqlActivity = `WITH finished AS (
		SELECT method, phase, expires_at, verified_at, contacts FROM phoneproof_requests
		WHERE project = $1 AND work = 3 AND since >= $3::timestamptz ORDER BY since DESC LIMIT $5
	), undelivered AS (
		SELECT method, verified_at FROM phoneproof_requests WHERE project = $1 AND work = 2 LIMIT $5
	), pending AS (
		SELECT method, contacts FROM phoneproof_requests WHERE project = $1 AND work = 1 LIMIT $5
	)
	SELECT count(*) FILTER (WHERE phase = 'EXPIRED' AND expires_at >= $4::timestamptz), max(verified_at), ''
		FROM finished WHERE method = $2
	UNION ALL SELECT 0, max(verified_at), '' FROM undelivered WHERE method = $2
	UNION ALL SELECT 0, NULL::timestamptz, contacts FROM finished WHERE method = $2 AND phase = 'EXPIRED' AND contacts <> ''
	UNION ALL SELECT 0, NULL::timestamptz, contacts FROM pending WHERE method = $2 AND contacts <> ''`

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
		)
		_, err := pgx.ForEachRow(rows, []any{&expired, &verified, &contacts}, func() error {
			bound, err := decodeContacts(contacts)
			if err != nil {
				return fmt.Errorf("contacts of a request: %w", err)
			}
			activity.Expired += expired
			activity.Hear(&verification.Request{VerifiedAt: timeOrZero(verified), Contacts: bound}, since)
			return nil
		})
		return wrapStep("read activity", err)
	})
	return activity, err
}
