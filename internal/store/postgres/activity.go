package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// expiredUncanceled selects the requests that Activity.Expired counts: the text of hints has their kinds in quotes.
const expiredUncanceled = `phase = 'EXPIRED' AND expires_at >= $4::timestamptz AND hints NOT LIKE '%"CANCELED"%'`

// sqlActivity reads the latest finished requests from their range of the index, up to a limit, and as many open ones. The first four rows
// sum up those that expired, or were proven or verified; each of the others has the contacts, hints and client data of one that was not
// verified.
var sqlActivity = `WITH finished AS (
		SELECT coalesce(nullif(verified_by, ''), method) AS method, phase, expires_at, verified_at, proven_at, contacts, hints, client_data
		FROM phoneproof_requests
		WHERE project = $1 AND work = 3 AND since >= $3::timestamptz AND NOT test ORDER BY since DESC LIMIT $5
	), undelivered AS (
		SELECT coalesce(nullif(verified_by, ''), method) AS method, phase, expires_at, verified_at, proven_at, contacts, hints, client_data
		FROM phoneproof_requests WHERE project = $1 AND work = 2 LIMIT $5
	), pending AS (
		SELECT coalesce(nullif(verified_by, ''), method) AS method, proven_at, contacts, hints, client_data
		FROM phoneproof_requests WHERE project = $1 AND work IN (1, 4) AND NOT test LIMIT $5
	)
	SELECT count(*) FILTER (WHERE ` + expiredUncanceled + `),
			max(coalesce(proven_at, verified_at)), '', '', ''
		FROM finished WHERE method = $2
	UNION ALL SELECT count(*) FILTER (WHERE ` + expiredUncanceled + `),
			max(coalesce(proven_at, verified_at)), '', '', ''
		FROM undelivered WHERE method = $2
	UNION ALL SELECT 0, max(proven_at), '', '', '' FROM pending WHERE method = $2
	UNION ALL SELECT 0, NULL::timestamptz, contacts, hints, client_data FROM (
		SELECT method, contacts, hints, client_data FROM finished WHERE phase = 'EXPIRED'
		UNION ALL SELECT method, contacts, hints, client_data FROM undelivered WHERE verified_at IS NULL
		UNION ALL SELECT method, contacts, hints, client_data FROM pending
	) AS unverified WHERE method = $2 AND (contacts <> '' OR hints <> '')`

// Activity implements verification.Counter. It reads nothing that was finished before since. A message for one of these, which gets
// the hint that it came too late, is not heard: no index leads to it, and any other message ends the silence.
func (s *Store) Activity(ctx context.Context, m verification.Method, since time.Time) (verification.Activity, error) {
	var activity verification.Activity
	err := s.inTransaction(ctx, func(c *pgx.Conn) error {
		activity = verification.Activity{}
		rows, _ := c.Query(ctx, sqlActivity, s.options.Project, string(m), since, since.Add(-verification.ExpiryGrace),
			verification.MostCounted) // rows holds the error, too
		var (
			expired               int
			heard                 *time.Time
			contacts, hints, data string
		)
		_, err := pgx.ForEachRow(rows, []any{&expired, &heard, &contacts, &hints, &data}, func() error {
			r := verification.Request{VerifiedAt: timeOrZero(heard)}
			var err error
			if r.Contacts, err = decodeContacts(contacts); err != nil {
				return fmt.Errorf("contacts of a request: %w", err)
			}
			if r.Hints, err = decodeHints(hints); err != nil {
				return fmt.Errorf("hints of a request: %w", err)
			}
			if err = decodeClientData(data, &r); err != nil {
				return fmt.Errorf("client data of a request: %w", err)
			}
			activity.Expired += expired
			activity.Hear(&r, since)
			return nil
		})
		return wrapStep("read activity", err)
	})
	if err != nil {
		return verification.Activity{}, fmt.Errorf("read activity of requests: %w", err)
	}
	return activity, nil
}

// CodesStarted implements verification.Counter. No request in this store has a code yet.
func (s *Store) CodesStarted(context.Context, time.Time) (map[string]int, error) { return nil, nil } //nolint:nilnil // no key started any
