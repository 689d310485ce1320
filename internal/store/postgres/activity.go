package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// expiredUncanceled selects the requests that Activity.Expired counts: the text of hints has their kinds in quotes.
const expiredUncanceled = `phase = 'EXPIRED' AND deliver = '' AND expires_at >= $4::timestamptz AND hints NOT LIKE '%"CANCELED"%'`

// activityColumns are what sqlActivity reads of a request.
const activityColumns = `coalesce(nullif(verified_by, ''), method) AS method, phase, expires_at, verified_at, proven_at, contacts, hints,
			client_data, deliver, via FROM phoneproof_requests`

// activityMargin is longer than a request waits for a message, and than the code of one that is verified has to rest.
const activityMargin = verification.MaxTTL + verification.CodeRest

// sqlActivity reads the latest finished requests from their range of the index, up to a limit, and as many open ones. Those with a code
// are kept for a day, which sets their column since: they would hide all others, and are read by an index of their own. The first three
// rows sum up those that expired, or were proven or verified by a message; each of the others has the contacts, hints and client data of
// one that was not.
var sqlActivity = `WITH finished AS (
		(SELECT ` + activityColumns + ` WHERE project = $1 AND work = 3 AND since >= $3::timestamptz
			AND since <= statement_timestamp() + $6::interval AND deliver = '' AND NOT test ORDER BY since DESC LIMIT $5)
		UNION ALL
		(SELECT ` + activityColumns + ` WHERE project = $1 AND created_at >= $3::timestamptz - $6::interval
			AND deliver <> '' AND deliver <> 'GIVEN' AND NOT test ORDER BY created_at DESC LIMIT $5)
	), undelivered AS (
		SELECT ` + activityColumns + ` WHERE project = $1 AND work = 2 LIMIT $5
	), pending AS (
		SELECT ` + activityColumns + ` WHERE project = $1 AND work IN (1, 4) AND NOT test LIMIT $5
	)
	SELECT count(*) FILTER (WHERE ` + expiredUncanceled + `),
			max(coalesce(proven_at, verified_at)) FILTER (WHERE via = ''), '', '', ''
		FROM finished WHERE method = $2
	UNION ALL SELECT count(*) FILTER (WHERE ` + expiredUncanceled + `),
			max(coalesce(proven_at, verified_at)) FILTER (WHERE via = ''), '', '', ''
		FROM undelivered WHERE method = $2
	UNION ALL SELECT 0, max(proven_at) FILTER (WHERE via = ''), '', '', '' FROM pending WHERE method = $2
	UNION ALL SELECT 0, NULL::timestamptz, contacts, hints, client_data FROM (
		SELECT method, contacts, hints, client_data FROM finished WHERE phase = 'EXPIRED' OR via <> ''
		UNION ALL SELECT method, contacts, hints, client_data FROM undelivered WHERE verified_at IS NULL
		UNION ALL SELECT method, contacts, hints, client_data FROM pending
	) AS unverified WHERE method = $2 AND (contacts <> '' OR hints <> '')`

// Activity implements verification.Counter. It reads none that was finished before since. A message for one of these, which gets
// the hint that it came too late, is not heard: no index leads to it, and any other message ends the silence.
func (s *Store) Activity(ctx context.Context, m verification.Method, since time.Time) (verification.Activity, error) {
	var activity verification.Activity
	err := s.inTransaction(ctx, func(c *pgx.Conn) error {
		activity = verification.Activity{}
		rows, _ := c.Query(ctx, sqlActivity, s.options.Project, string(m), since, since.Add(-verification.ExpiryGrace),
			verification.MostCounted, activityMargin) // rows holds the error, too
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

// CodesStarted implements verification.Counter.
func (s *Store) CodesStarted(ctx context.Context, m verification.Method, since time.Time) (map[string]int, error) {
	started := make(map[string]int)
	err := s.inTransaction(ctx, func(c *pgx.Conn) error {
		clear(started)
		rows, _ := c.Query(ctx, sqlCodes, s.options.Project, since, verification.MostCodesCounted, string(m)) // rows holds the error, too
		var (
			key   string
			codes int
		)
		_, err := pgx.ForEachRow(rows, []any{&key, &codes}, func() error {
			started[key] = codes
			return nil
		})
		return wrapStep("read codes", err)
	})
	if err != nil {
		return nil, fmt.Errorf("count codes: %w", err)
	}
	return started, nil
}
