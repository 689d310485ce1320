package floor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Schema is all that the server stores. An event is due from due_at on, and leased until then.
const Schema = `CREATE TABLE floor_requests (
	id text PRIMARY KEY, phone text NOT NULL, code text NOT NULL, expires_at timestamptz NOT NULL, verified_at timestamptz, due_at timestamptz,
	attempts int NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX ON floor_requests (code) WHERE verified_at IS NULL;
CREATE INDEX ON floor_requests (due_at) WHERE due_at IS NOT NULL`

type (
	created struct {
		id, phone, code string
		expires         time.Time
	}
	message  struct{ phone, code string }
	nothing  struct{}
	question = string // the id of a request
	found    struct {
		phone    string // empty if there is no such request
		expires  time.Time
		verified *time.Time
	}
	dueEvent struct {
		id, phone string
		verified  time.Time
	}
)

// store has a connection for each kind of call, which does all that waits with one statement.
type store struct {
	pool   *pgxpool.Pool
	events bool

	creations *batcher[created, nothing]
	questions *batcher[question, found]
	messages  *batcher[message, nothing]
	records   *batcher[string, nothing] // ids of requests whose event was delivered
}

func openStore(ctx context.Context, uri string, events bool) (*store, error) {
	config, err := pgxpool.ParseConfig(uri)
	if err != nil {
		return nil, fmt.Errorf("parse URI of database: %w", err)
	}
	// Statements are planned while the table is empty, where reading all of it looks cheapest.
	config.ConnConfig.RuntimeParams["enable_seqscan"] = "off"
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	if _, err := pool.Exec(ctx, Schema); err != nil {
		pool.Close()
		return nil, fmt.Errorf("create table: %w", err)
	}
	s := &store{pool: pool, events: events}
	s.creations = newBatcher(s.create)
	s.questions = newBatcher(s.find)
	s.messages = newBatcher(s.verify)
	s.records = newBatcher(s.record)
	return s, nil
}

func (s *store) close() { s.pool.Close() }

// start lets the batchers work until ctx ends.
func (s *store) start(ctx context.Context, fail func(error)) {
	go s.creations.work(ctx, fail)
	go s.questions.work(ctx, fail)
	go s.messages.work(ctx, fail)
	go s.records.work(ctx, fail)
}

func (s *store) create(ctx context.Context, all []created) ([]nothing, error) {
	ids, phones, codes, expires := make([]string, len(all)), make([]string, len(all)), make([]string, len(all)), make([]time.Time, len(all))
	for i, one := range all {
		ids[i], phones[i], codes[i], expires[i] = one.id, one.phone, one.code, one.expires
	}
	_, err := s.pool.Exec(ctx, `INSERT INTO floor_requests (id, phone, code, expires_at)
		SELECT id, phone, code, expires_at
		FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[]) AS made (id, phone, code, expires_at)`, ids, phones, codes, expires)
	return make([]nothing, len(all)), err
}

func (s *store) find(ctx context.Context, ids []question) ([]found, error) {
	rows, err := s.pool.Query(ctx, `SELECT asked.at, r.phone, r.expires_at, r.verified_at
		FROM unnest($1::text[]) WITH ORDINALITY AS asked (id, at) JOIN floor_requests AS r USING (id)`, ids)
	if err != nil {
		return nil, err
	}
	all := make([]found, len(ids))
	var at int
	var one found
	_, err = pgx.ForEachRow(rows, []any{&at, &one.phone, &one.expires, &one.verified}, func() error {
		all[at-1] = one
		return nil
	})
	return all, err
}

func (s *store) verify(ctx context.Context, all []message) ([]nothing, error) {
	phones, codes := make([]string, len(all)), make([]string, len(all))
	for i, one := range all {
		phones[i], codes[i] = one.phone, one.code
	}
	_, err := s.pool.Exec(ctx, `UPDATE floor_requests SET verified_at = now(), due_at = CASE WHEN $3 THEN now() END
		WHERE id = ANY (ARRAY(SELECT r.id FROM unnest($1::text[], $2::text[]) AS sent (phone, code) CROSS JOIN LATERAL (
			SELECT id FROM floor_requests
			WHERE code = sent.code AND phone = sent.phone AND verified_at IS NULL AND expires_at > now() LIMIT 1) AS r))`,
		phones, codes, s.events)
	return make([]nothing, len(all)), err
}

// claim leases events that are due.
func (s *store) claim(ctx context.Context, most int) ([]dueEvent, error) {
	rows, err := s.pool.Query(ctx, `UPDATE floor_requests SET due_at = now() + interval '1 minute', attempts = attempts + 1 WHERE id IN (
			SELECT id FROM floor_requests WHERE due_at <= now() ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED)
		RETURNING id, phone, verified_at`, most)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (e dueEvent, err error) {
		return e, row.Scan(&e.id, &e.phone, &e.verified)
	})
}

// record ends the events of requests.
func (s *store) record(ctx context.Context, ids []string) ([]nothing, error) {
	_, err := s.pool.Exec(ctx, `UPDATE floor_requests SET due_at = NULL WHERE id = ANY($1)`, ids)
	return make([]nothing, len(ids)), err
}

// maxBatch bounds a statement.
const maxBatch = 500

// batcher does all calls that wait at once.
type batcher[In, Out any] struct {
	queue chan call[In, Out]
	run   func(context.Context, []In) ([]Out, error)
}

type call[In, Out any] struct {
	in   In
	done chan Out // closed without a value after an error
}

func newBatcher[In, Out any](run func(context.Context, []In) ([]Out, error)) *batcher[In, Out] {
	return &batcher[In, Out]{queue: make(chan call[In, Out], maxBatch), run: run}
}

// do returns when the statement that has this call is committed.
func (b *batcher[In, Out]) do(ctx context.Context, in In) (Out, error) {
	var none Out
	c := call[In, Out]{in, make(chan Out, 1)}
	select {
	case b.queue <- c:
	case <-ctx.Done():
		return none, fmt.Errorf("queue call: %w", ctx.Err())
	}
	select {
	case out, ok := <-c.done:
		if !ok {
			return none, errors.New("the database failed")
		}
		return out, nil
	case <-ctx.Done():
		return none, fmt.Errorf("wait for commit: %w", ctx.Err())
	}
}

// work runs batches until ctx ends. A statement that fails ends the server: a measurement is worth nothing then.
func (b *batcher[In, Out]) work(ctx context.Context, fail func(error)) {
	for {
		var all []call[In, Out]
		select {
		case <-ctx.Done():
			return
		case first := <-b.queue:
			all = append(all, first)
		}
		for range min(len(b.queue), maxBatch-1) {
			all = append(all, <-b.queue)
		}
		ins := make([]In, len(all))
		for i := range all {
			ins[i] = all[i].in
		}
		outs, err := b.run(ctx, ins)
		if err != nil {
			fail(fmt.Errorf("run batch: %w", err))
		}
		for i := range all {
			if err == nil {
				all[i].done <- outs[i]
			}
			close(all[i].done)
		}
	}
}
