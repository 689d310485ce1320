package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// abandonedInterval is the interval at which a project without a webhook looks for abandoned events. They have no index of
// their own and are not urgent.
const abandonedInterval = 10 * time.Second

// extraInterval is the interval at which events that could have an extra attempt are looked for. That reads all that wait.
const extraInterval = 10 * time.Second

// admissionSweepInterval is the interval at which old admissions are swept. Keys have one admission row per batch, not per
// request.
const admissionSweepInterval = 10 * time.Second

// Claim implements verification.Queue.
func (s *Store) Claim(
	ctx context.Context, policy verification.Policy, limit int, lease time.Duration,
) ([]verification.Request, error) {
	if err := ctx.Err(); err != nil || limit <= 0 {
		return nil, err
	}
	arguments := s.dueArguments(policy, limit)
	var claimed []state
	at := time.Now()
	err := s.inWrite(ctx, func(ctx context.Context, c *pgx.Conn) error {
		claimed = claimed[:0]
		if _, err := c.Exec(ctx, sqlBegin); err != nil {
			return wrapStep("begin", err)
		}
		due, err := collectIDs(c.Query(ctx, sqlDue, arguments...))
		if err != nil {
			return wrapStep("find due requests", err)
		}
		batch := &pgx.Batch{}
		for _, id := range due {
			batch.Queue(sqlLease, s.options.Project, id, lease).Query(func(rows pgx.Rows) error {
				leased, err := pgx.CollectExactlyOneRow(rows, scanState)
				claimed = append(claimed, leased)
				return wrapStep("read leased request", err)
			})
		}
		batch.Queue(sqlCommit)
		return wrapStep("lease due requests", c.SendBatch(ctx, batch).Close())
	})
	if err != nil {
		return nil, fmt.Errorf("claim due requests: %w", err)
	}
	s.leaseCache.put(claimed, at)
	requests := make([]verification.Request, len(claimed))
	for i := range claimed {
		requests[i] = claimed[i].Clone()
		if requests[i].Delivery.NextAttemptAt.After(claimed[i].readAt) {
			s.extraAt.Store(0) // there may be more
		}
	}
	return requests, nil
}

// Release implements verification.Queue.
func (s *Store) Release(ctx context.Context, claims map[string]int64) error {
	ids := slices.Sorted(maps.Keys(claims))
	epochs := make([]int64, len(ids))
	for i, id := range ids {
		epochs[i] = claims[id]
	}
	err := s.inWrite(ctx, func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, sqlRelease, s.options.Project, ids, epochs)
		return wrapStep("end leases", err)
	})
	if err != nil {
		return fmt.Errorf("release claims: %w", err)
	}
	return nil
}

// dueArguments returns the arguments of sqlDue. An event is claimed for an extra attempt only if its next one is further away than a lease
// usually lasts: if none can be made in time, the lease must not delay the next one.
func (s *Store) dueArguments(policy verification.Policy, limit int) []any {
	var repaired time.Time // for NULL, with which no event that waits is read
	if policy.Events == verification.EventsOn && !policy.Repaired.IsZero() && s.intervalElapsed(&s.extraAt, extraInterval) {
		repaired = policy.Repaired
	}
	abandoned := policy.Events == verification.EventsOff && s.intervalElapsed(&s.abandonedAt, abandonedInterval)
	return []any{
		s.options.Project, limit, policy.Retention, policy.Events == verification.EventsOn, abandoned,
		max(policy.Retention, verification.EventLife), verification.ExpiryGrace, verification.ConfirmGrace,
		policy.TestEvents == verification.EventsOn, policy.TestEvents == verification.EventsOff, timeOrNil(repaired), 2 * verification.ExtraLead,
		verification.CodeKept,
	}
}
