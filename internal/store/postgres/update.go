package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// freshness is how much later than it was decided a state may be written: a process that slept in between decides anew.
// It is less than verification.ExpiryGrace, so nothing is verified that was already shown as expired.
const freshness = 2 * time.Second

// change is a state to be written over the one it was made from.
type change struct {
	before  state
	after   verification.Request
	version int64
}

// Update implements verification.Store.
func (s *Store) Update(
	ctx context.Context, id string, mutate func(r *verification.Request, now time.Time) error,
) (verification.Request, error) {
	var tried int64 = -1
	for {
		before, leased := s.leased.take(id, time.Now())
		if !leased {
			var err error
			if before, err = s.read(ctx, id); err != nil {
				return verification.Request{}, err
			}
		}
		if before.version == tried { // it was written after all: its answer was lost
			return before.Request, nil
		}
		c := change{before: before, after: before.Request, version: newVersion()}
		c.after.Contacts = slices.Clone(before.Contacts)
		err := mutate(&c.after, before.readAt)
		if err != nil && leased {
			continue // only a write tells whether that state is still current
		}
		if err == nil {
			err = ctx.Err() // whoever gave up meanwhile is told nothing, so nothing may happen
		}
		if errors.Is(err, verification.ErrUnchanged) {
			err = nil
			return before.Request, err
		}
		if err != nil {
			return before.Request, err
		}
		c.keep()
		written, err := s.updates.do(ctx, c)
		if err != nil {
			return verification.Request{}, err
		}
		if written {
			s.watch.Notify(id)
			s.announce(&c)
			return c.after, nil
		}
		tried = c.version
	}
}

// announce tells of an event that is due now.
func (s *Store) announce(c *change) {
	if work, since := workOf(&c.after); work != workDeliver || since.After(c.before.readAt) {
		return
	}
	select {
	case s.due <- struct{}{}:
	default:
	}
}

// keep restores what no mutation may change and cuts off what the database does not keep.
func (c *change) keep() {
	before, after := c.before.Request, stored(c.after)
	after.ID, after.Phone, after.Method = before.ID, before.Phone, before.Method
	after.CreatedAt, after.ExpiresAt = before.CreatedAt, before.ExpiresAt
	after.KeyName, after.BodyHash, after.Epoch = before.KeyName, before.BodyHash, before.Epoch
	after.DisplayName = before.DisplayName
	after.Version = versionText(c.version)
	c.after = after
}

// updateAll writes the states of a batch that are still made from the current ones, in one transaction.
func (s *Store) updateAll(ctx context.Context, calls []*call[change, bool]) error {
	// In order, so that two batches do not wait for each other crosswise.
	slices.SortFunc(calls, func(a, b *call[change, bool]) int { return strings.Compare(a.in.after.ID, b.in.after.ID) })
	return s.repeat(ctx, func(c *pgx.Conn) error {
		batch := &pgx.Batch{}
		batch.Queue(sqlBegin)
		for _, call := range calls {
			s.queueUpdate(batch, call)
		}
		s.queueBindings(batch, calls)
		batch.Queue(sqlCommit)
		if batch.Len() == 3 { // a statement is a transaction
			batch.QueuedQueries = batch.QueuedQueries[1:2]
		}
		return c.SendBatch(ctx, batch).Close()
	})
}

func (s *Store) queueUpdate(batch *pgx.Batch, c *call[change, bool]) {
	r, d := &c.in.after, &c.in.after.Delivery
	work, since := workOf(r)
	batch.Queue(sqlUpdate, s.options.Project, r.ID, c.in.before.version, c.in.version, c.in.before.readAt.Add(freshness),
		string(r.Phase), set(r.VerifiedAt), r.Actual.E164(), string(r.Assurance), encodeContacts(r.Contacts),
		d.Attempts, set(d.NextAttemptAt), set(d.LastAttemptAt), d.LastStatusCode, d.LastReason,
		set(d.DeliveredAt), set(d.ExhaustedAt), r.Redelivered, work, since,
	).Exec(func(tag pgconn.CommandTag) error {
		c.out = tag.RowsAffected() > 0
		return nil
	})
}

// queueBindings leads senders to the requests they were bound to. Only a contact that is new or newly bound leads to its
// request: one that was there before may lead to a later one by now.
func (s *Store) queueBindings(batch *pgx.Batch, calls []*call[change, bool]) {
	type binding struct {
		sender string
		change *change
	}
	var bound []binding
	for _, c := range calls {
		for _, sender := range c.in.after.Contacts {
			if !slices.Contains(c.in.before.Contacts, sender) {
				bound = append(bound, binding{sender.Binding, &c.in})
			}
		}
	}
	slices.SortFunc(bound, func(a, b binding) int { return strings.Compare(a.sender, b.sender) })
	for _, b := range bound {
		batch.Queue(sqlBind, s.options.Project, b.change.after.ID, b.change.version, b.sender)
	}
}
