package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// maxStateAge bounds the time between the read of a state and the write derived from it: a process that slept in between must
// decide anew. It is less than verification.ExpiryGrace, so no request is verified after it was shown as expired.
const maxStateAge = 2 * time.Second

// change is a state that replaces the one it was derived from.
type change struct {
	before  state
	after   verification.Request
	version int64
}

// Update implements verification.Store. A mutation's error is an answer for good, and so is that there is no such request. Neither may
// come from a former primary, so each is decided once more where there is a synchronous standby.
func (s *Store) Update(ctx context.Context, id string, mutate verification.Mutation) (verification.Request, error) {
	r, err := s.decideUpdate(ctx, id, mutate, &s.reads)
	if err == nil || !s.synchronous.Load() || ctx.Err() != nil || errors.Is(err, errUnavailable) {
		return r, err
	}
	return s.decideUpdate(ctx, id, mutate, &s.primaryReads)
}

// decideUpdate applies the mutation to the state that the reads return, until that state is still the present one.
func (s *Store) decideUpdate(
	ctx context.Context, id string, mutate verification.Mutation, reads *batcher[string, *state],
) (verification.Request, error) {
	var attempted int64 = -1
	for {
		before, leased := s.leaseCache.takeFresh(id, time.Now())
		if !leased {
			read, err := readFrom(ctx, reads, id)
			if err != nil {
				return verification.Request{}, fmt.Errorf("read current state: %w", err)
			}
			before = *read
			before.Request = read.Clone()
		}
		if before.version == attempted { // the write was committed, but its answer was lost
			return before.Request, nil
		}
		next, err := before.Apply(mutate, before.readAt)
		if err != nil && leased {
			continue // a cached state may be outdated: decide on one that is read
		}
		if err == nil {
			err = ctx.Err() // a caller that has gone gets no answer, so nothing is written
		}
		if errors.Is(err, verification.ErrUnchanged) {
			return before.Request, nil
		}
		if err != nil {
			return before.Request, err
		}
		c := change{before: before, after: next, version: newVersion()}
		c.after.Version = versionText(c.version)
		written, err := s.updates.do(ctx, c)
		if err != nil {
			return verification.Request{}, fmt.Errorf("store change: %w", err)
		}
		if written {
			s.watch.Notify(id)
			s.notifyDue(&c)
			return c.after, nil
		}
		attempted = c.version
	}
}

// notifyDue notifies Due if the change made an event due.
func (s *Store) notifyDue(c *change) {
	if _, since := workOf(&c.after); c.after.Delivery.Wanted() && !since.After(c.before.readAt) {
		s.notifyWorker()
	}
}

// notifyWorker makes this replica claim before the next poll.
func (s *Store) notifyWorker() {
	select {
	case s.due <- struct{}{}:
	default:
	}
}

// updateAll writes the changes of a batch in one transaction, except those of outdated states.
func (s *Store) updateAll(ctx context.Context, calls []*call[change, bool]) error {
	// Sorted, so that two batches cannot deadlock.
	slices.SortFunc(calls, func(a, b *call[change, bool]) int { return strings.Compare(a.in.after.ID, b.in.after.ID) })
	return s.retryWrite(ctx, func(c *pgx.Conn) error {
		batch := &pgx.Batch{}
		batch.Queue(sqlBegin)
		for _, call := range calls {
			s.queueUpdate(batch, call)
		}
		s.queueBindings(batch, calls)
		batch.Queue(sqlCommit)
		if batch.Len() == 3 { // a single statement needs no explicit transaction
			batch.QueuedQueries = batch.QueuedQueries[1:2]
		}
		return wrapStep("write changes", c.SendBatch(ctx, batch).Close())
	})
}

func (s *Store) queueUpdate(batch *pgx.Batch, c *call[change, bool]) {
	r, d := &c.in.after, &c.in.after.Delivery
	work, since := workOf(r)
	batch.Queue(sqlUpdate, s.options.Project, r.ID, c.in.before.version, c.in.version, c.in.before.readAt.Add(maxStateAge),
		string(r.Phase), timeOrNil(r.VerifiedAt), r.Actual.E164(), string(r.Assurance), encodeContacts(r.Contacts),
		d.Attempts, timeOrNil(d.NextAttemptAt), timeOrNil(d.LastAttemptAt), d.LastStatusCode, d.LastReason,
		timeOrNil(d.DeliveredAt), timeOrNil(d.ExhaustedAt), r.Redelivered, encodeHints(r.Hints), work, since,
		c.in.before.HasSameWork(r), string(r.VerifiedBy), timeOrNil(r.ProvenAt), r.WrongCodes, encodeAttempts(r.EarlierAttempts),
		timeOrNil(d.ExtraFrom), string(r.Via), string(r.Code.State), r.Code.Reason,
	).Exec(func(tag pgconn.CommandTag) error {
		c.out = tag.RowsAffected() > 0
		return nil
	})
	if at := r.DeclinedAt(); !at.IsZero() && c.in.before.DeclinedAt().IsZero() && !r.Test { // a test number has no owner
		batch.Queue(sqlInsertDecline, s.options.Project, r.ID, c.in.version, lineOf(r.Phone), at)
	}
}

// queueBindings maps senders who are to share their contact to the requests they were bound to. It skips contacts that were there
// before, because they may map to a later request by now.
func (s *Store) queueBindings(batch *pgx.Batch, calls []*call[change, bool]) {
	type binding struct {
		sender string
		change *change
	}
	var bound []binding
	for _, c := range calls {
		for _, sender := range c.in.after.Contacts {
			if sender.Kind == verification.ContactShare && !slices.Contains(c.in.before.Contacts, sender) {
				bound = append(bound, binding{sender.Binding, &c.in})
			}
		}
	}
	slices.SortFunc(bound, func(a, b binding) int { return strings.Compare(a.sender, b.sender) })
	for _, b := range bound {
		batch.Queue(sqlBind, s.options.Project, b.change.after.ID, b.change.version, b.sender)
	}
}
