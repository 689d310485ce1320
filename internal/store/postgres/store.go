package postgres

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/phoneproof/phoneproof/internal/storeclock"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// flights is how many batches of a kind are on their way at once. More would make each smaller, and its share of what a
// transaction costs larger; creations of one key would wait for each other anyway.
const flights = 1

// Options say which requests a store keeps, and where.
type Options struct {
	// Project is "namespace/name".
	Project string
	// Address returns where the database is. A new one is taken within a second.
	Address func() Address
	Log     logr.Logger
	// Clock is told the database's time; may be nil.
	Clock *storeclock.Clock
	// Registerer takes the store's metrics; may be nil.
	Registerer prometheus.Registerer
}

// Store is one replica's view of a project. It is safe for concurrent use, and answers once Start has connected it.
type Store struct {
	options Options
	metrics *metrics
	pool    atomic.Pointer[pgxpool.Pool]
	problem atomic.Pointer[DatabaseError]
	// unencrypted is whether the connection that Ready used last crosses a network without TLS.
	unencrypted atomic.Bool

	crew    crew
	creates batcher[creation, verification.Created]
	updates batcher[change, bool]
	reads   batcher[string, found]
	watch   watch
	leased  leased
	due     chan struct{}

	// When what has no hurry was done last, by this process's clock.
	abandonedAt, keysSweptAt atomic.Int64
}

var (
	_ verification.Store   = (*Store)(nil)
	_ verification.Queue   = (*Store)(nil)
	_ verification.Sweeper = (*Store)(nil)
	_ verification.Counter = (*Store)(nil)
)

// New returns a store that is not connected yet.
func New(o Options) (*Store, error) {
	s := &Store{options: o, due: make(chan struct{}, 1)}
	var err error
	if s.metrics, err = newMetrics(s, o.Registerer); err != nil {
		return nil, err
	}
	s.problem.Store(&DatabaseError{Message: "the database was not reached yet"})
	s.creates = batcher[creation, verification.Created]{
		crew: &s.crew, flights: flights, fits: creationFits, sizes: s.metrics.batches.WithLabelValues(opCreate),
		run: func(ctx context.Context, calls []*call[creation, verification.Created]) {
			apart(ctx, calls, s.createAll)
		},
	}
	s.updates = batcher[change, bool]{
		crew: &s.crew, flights: flights, sizes: s.metrics.batches.WithLabelValues(opUpdate),
		run: func(ctx context.Context, calls []*call[change, bool]) { apart(ctx, calls, s.updateAll) },
	}
	s.reads = batcher[string, found]{
		crew: &s.crew, flights: flights, sizes: s.metrics.batches.WithLabelValues(opRead),
		run: func(ctx context.Context, calls []*call[string, found]) { apart(ctx, calls, s.readAll) },
	}
	return s, nil
}

// Problem returns why the database does not serve us; nil if it does. It may be some seconds old.
func (s *Store) Problem() error {
	if p := s.problem.Load(); p != nil {
		return p
	}
	return nil
}

// Due returns a channel that gets a value, coalesced, after this replica made an event due: there is something to claim,
// before the next poll would find it.
func (s *Store) Due() <-chan struct{} { return s.due }

// Ready implements verification.Store.
func (s *Store) Ready(ctx context.Context) error {
	return s.once(ctx, func(c *pgx.Conn) error {
		s.noteEncryption(c)
		_, err := c.Exec(ctx, sqlReady, s.options.Project)
		return err
	})
}

// Unencrypted reports whether requests cross a network without TLS on their way to the database, by what Ready last saw.
func (s *Store) Unencrypted() bool { return s.unencrypted.Load() }

func (s *Store) noteEncryption(c *pgx.Conn) {
	now := isExposed(c.PgConn().Conn())
	if before := s.unencrypted.Swap(now); now && !before {
		s.options.Log.Info("the connection to the database is unencrypted")
	}
}

// Get implements verification.Store.
func (s *Store) Get(ctx context.Context, id string) (verification.Request, error) {
	read, err := s.read(ctx, id)
	return read.Request, err
}

// Peek implements verification.Store. What is final could be remembered, but that it is still stored could not: reads are
// batched instead.
func (s *Store) Peek(ctx context.Context, id string) (verification.Request, error) {
	return s.Get(ctx, id)
}

// found is what a read came to.
type found struct {
	state

	exists bool
}

func (s *Store) read(ctx context.Context, id string) (state, error) {
	f, err := s.reads.do(ctx, id)
	if err == nil && !f.exists {
		err = verification.ErrNotFound
	}
	if err != nil {
		return state{}, err
	}
	f.Contacts = append([]verification.Contact(nil), f.Contacts...) // others may have read the same row
	return f.state, nil
}

func (s *Store) readAll(ctx context.Context, calls []*call[string, found]) error {
	ids := make([]string, len(calls))
	for i, c := range calls {
		ids[i] = c.in
	}
	return s.repeat(ctx, func(c *pgx.Conn) error {
		states, err := s.fetch(ctx, c, ids)
		if err != nil {
			return err
		}
		for _, c := range calls {
			c.out.state, c.out.exists = states[c.in], false
			_, c.out.exists = states[c.in]
		}
		return nil
	})
}

// Awaiting implements verification.Store. A binding leads to the last request it was bound to, as long as that is stored
// and has it among its contacts.
func (s *Store) Awaiting(ctx context.Context, binding string) (verification.Request, error) {
	var r verification.Request
	err := s.once(ctx, func(c *pgx.Conn) error {
		rows, err := c.Query(ctx, sqlAwaiting, s.options.Project, binding)
		if err != nil {
			return err
		}
		read, err := pgx.CollectExactlyOneRow(rows, scan)
		r = read.Request
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) || err == nil && r.BoundAt(binding).IsZero() {
		return verification.Request{}, verification.ErrNotFound
	}
	return r, err
}

// Stored implements verification.Counter. It counts up to MostCounted of each kind.
func (s *Store) Stored(ctx context.Context) (verification.Stored, error) {
	var stored verification.Stored
	err := s.once(ctx, func(c *pgx.Conn) error {
		return c.QueryRow(ctx, sqlStored, s.options.Project, verification.MostCounted).
			Scan(&stored.Pending, &stored.Undelivered, &stored.Finished)
	})
	return stored, err
}

// Subscribe implements verification.Store.
func (s *Store) Subscribe(id string) (<-chan struct{}, func()) { return s.watch.subscribe(id) }

// once runs a transaction, repeating it as needed, for one caller.
func (s *Store) once(ctx context.Context, f func(c *pgx.Conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := s.repeat(ctx, f)
	switch {
	case err == nil, errors.Is(err, pgx.ErrNoRows):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return unavailable(err)
	}
}

// dueAgain tells, once, that so much time has gone since it told the last time.
func (s *Store) dueAgain(last *atomic.Int64, every time.Duration) bool {
	now := time.Now().UnixNano()
	before := last.Load()
	return now-before >= int64(every) && last.CompareAndSwap(before, now)
}
