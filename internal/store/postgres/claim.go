package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// abandonedEvery is how often a project without a webhook looks for events that nobody will want any more. They have no
// index of their own, and no hurry.
const abandonedEvery = 10 * time.Second

// keysEvery is how often admissions are swept by time. Those of keys are as many as there were batches, not requests.
const keysEvery = 10 * time.Second

// Claim implements verification.Queue.
func (s *Store) Claim(
	ctx context.Context, policy verification.Policy, limit int, lease time.Duration,
) ([]verification.Request, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if limit <= 0 {
		return nil, nil
	}
	abandoned := policy.Events == verification.EventsOff && s.dueAgain(&s.abandonedAt, abandonedEvery)
	var claimed []state
	at := time.Now()
	err := s.once(ctx, func(c *pgx.Conn) error {
		claimed = claimed[:0]
		if _, err := c.Exec(ctx, sqlBegin); err != nil {
			return err
		}
		due, err := ids(c.Query(ctx, sqlDue, s.options.Project, limit, policy.Retention,
			policy.Events == verification.EventsOn, abandoned, max(policy.Retention, verification.EventLife)))
		if err != nil {
			return err
		}
		batch := &pgx.Batch{}
		for _, id := range due {
			batch.Queue(sqlLease, s.options.Project, id, lease).Query(func(rows pgx.Rows) error {
				leased, err := pgx.CollectExactlyOneRow(rows, scan)
				claimed = append(claimed, leased)
				return err
			})
		}
		batch.Queue(sqlCommit)
		return c.SendBatch(ctx, batch).Close()
	})
	if err != nil {
		return nil, err
	}
	s.leased.put(claimed, at)
	requests := make([]verification.Request, len(claimed))
	for i := range claimed {
		requests[i] = claimed[i].Request
		requests[i].Contacts = slices.Clone(claimed[i].Contacts)
	}
	return requests, nil
}
