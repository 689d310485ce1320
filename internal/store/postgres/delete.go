package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// deleted identifies a deleted request, to delete the rows that belong to it.
type deleted struct {
	id, phone string
	declined  bool
}

func scanDeleted(row pgx.CollectableRow) (d deleted, err error) {
	var stored string
	if err = row.Scan(&d.id, &d.phone, &stored); err != nil {
		return d, fmt.Errorf("scan deleted request: %w", err)
	}
	// A decline is one of the hints.
	d.declined = strings.Contains(stored, string(verification.HintDeclined))
	return d, nil
}

// Delete implements verification.Store.
func (s *Store) Delete(ctx context.Context, id, version string) error {
	var conflict bool
	err := s.inWrite(ctx, func(ctx context.Context, c *pgx.Conn) error {
		var gone []deleted
		batch := &pgx.Batch{}
		batch.Queue(sqlBegin)
		batch.Queue(sqlDelete, s.options.Project, id, parseVersion(version)).Query(func(rows pgx.Rows) (err error) {
			gone, err = pgx.CollectRows(rows, scanDeleted)
			return wrapStep("delete row", err)
		})
		batch.Queue(sqlVersions, s.options.Project, []string{id}).Query(func(rows pgx.Rows) error {
			rest, err := pgx.CollectRows(rows, scanVersion)
			conflict = len(rest) > 0
			return wrapStep("read version", err)
		})
		if err := c.SendBatch(ctx, batch).Close(); err != nil {
			return wrapStep("delete request", err)
		}
		return s.deleteRelated(ctx, c, gone)
	})
	switch {
	case err != nil:
		return err
	case conflict:
		return verification.ErrConflict
	default:
		s.watch.Notify(id)
		return nil
	}
}

// Sweep implements verification.Queue.
func (s *Store) Sweep(ctx context.Context, policy verification.Policy, limit int) (verification.Swept, error) {
	var expired []string
	err := s.inWrite(ctx, func(ctx context.Context, c *pgx.Conn) (err error) {
		expired, err = collectIDs(c.Query(ctx, sqlSweepLapsed, s.options.Project, limit, verification.CodeRest,
			policy.Kinds.Has(verification.EventExpired), verification.CodeKept))
		return wrapStep("expire requests", err)
	})
	if err != nil {
		return verification.Swept{}, fmt.Errorf("sweep lapsed requests: %w", err)
	}
	s.notifyAll(expired)
	var gone []deleted
	err = s.inWrite(ctx, func(ctx context.Context, c *pgx.Conn) (err error) {
		if _, err = c.Exec(ctx, sqlBegin); err != nil {
			return wrapStep("begin", err)
		}
		rows, _ := c.Query(ctx, sqlSweepFinished, s.options.Project, limit, policy.Retention, verification.CodeKept)
		if gone, err = pgx.CollectRows(rows, scanDeleted); err != nil {
			return wrapStep("delete finished requests", err)
		}
		return s.deleteRelated(ctx, c, gone)
	})
	if err != nil {
		return verification.Swept{Expired: len(expired)}, fmt.Errorf("sweep finished requests: %w", err)
	}
	for _, d := range gone {
		s.watch.Notify(d.id)
	}
	swept := verification.Swept{Expired: len(expired), Deleted: len(gone)}
	if s.intervalElapsed(&s.keysSweptAt, admissionSweepInterval) {
		if err := s.sweepAdmissions(ctx); err != nil {
			return swept, fmt.Errorf("sweep admissions: %w", err)
		}
	}
	return swept, nil
}

// sweepAdmissions deletes the admissions of keys and groups that no longer count.
func (s *Store) sweepAdmissions(ctx context.Context) error {
	return s.inWrite(ctx, func(ctx context.Context, c *pgx.Conn) error {
		for _, statement := range []string{sqlSweepKeys, sqlSweepGroups} {
			if _, err := c.Exec(ctx, statement, s.options.Project); err != nil {
				return wrapStep("delete old rows", err)
			}
		}
		return nil
	})
}

// deleteRelated deletes the rows that belonged to deleted requests, and commits the transaction.
func (s *Store) deleteRelated(ctx context.Context, c *pgx.Conn, gone []deleted) error {
	batch := &pgx.Batch{}
	if len(gone) > 0 {
		var requests, lines []string
		declined := false
		for _, d := range gone {
			requests, declined = append(requests, d.id), declined || d.declined
			if n, err := phone.FromE164(d.phone); err == nil {
				lines = append(lines, lineOf(n))
			}
		}
		slices.Sort(lines)
		lines = slices.Compact(lines)
		batch.Queue(sqlUnbind, s.options.Project, requests)
		batch.Queue(sqlUncount, s.options.Project, lines)
		if declined {
			batch.Queue(sqlDeleteDeclines, s.options.Project, lines, requests)
		}
	}
	batch.Queue(sqlCommit)
	return wrapStep("delete related rows", c.SendBatch(ctx, batch).Close())
}

func (s *Store) notifyAll(changed []string) {
	for _, id := range changed {
		s.watch.Notify(id)
	}
}

// collectIDs collects a column of ids. It takes the results of a query; an error is also that of the rows.
func collectIDs(rows pgx.Rows, _ error) ([]string, error) {
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
