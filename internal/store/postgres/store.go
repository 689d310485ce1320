package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// maxConcurrentBatches bounds the batches of a kind that run at the same time. More would make batches smaller and each
// operation dearer, and creations of one key would wait for each other anyway.
const maxConcurrentBatches = 1

// Options configure a Store.
type Options struct {
	// Project is "namespace/name".
	Project string
	// Address returns the address of the database. A change takes effect within a second.
	Address func() Address
	Log     logr.Logger
	// MeasureTime begins a measurement of the database's time: what it returns takes the answer. It may be nil.
	MeasureTime func() (told func(at time.Time, resolution time.Duration))
	// Registerer registers the store's metrics; may be nil.
	Registerer prometheus.Registerer
}

// Store is one replica's view of a project. It is safe for concurrent use, and usable once Start has connected it.
type Store struct {
	options Options
	metrics *metrics
	pool    atomic.Pointer[pgxpool.Pool]
	problem atomic.Pointer[DatabaseError]
	// synchronous reports whether a server was seen with a synchronous standby.
	synchronous atomic.Bool
	// leaving reports whether new connections avoid servers whose commits wait, because another one takes writes.
	leaving atomic.Bool
	// attempted is closed after the first attempt to connect.
	attempted chan struct{}
	// unencrypted reports whether the connection that Ready used last crosses a network without TLS.
	unencrypted atomic.Bool

	workers workerGroup
	creates batcher[creation, verification.Created]
	updates batcher[change, bool]
	reads   batcher[string, *state]
	// primaryReads are reads that fail at a former primary.
	primaryReads batcher[string, *state]
	watch        watch
	leaseCache   leaseCache
	due          chan struct{}

	// Times of the last runs of periodic work, in Unix nanoseconds of this process's clock.
	abandonedAt, extraAt, keysSweptAt atomic.Int64
}

var (
	_ verification.Store   = (*Store)(nil)
	_ verification.Queue   = (*Store)(nil)
	_ verification.Counter = (*Store)(nil)
)

// New returns a store that is not connected yet.
func New(o Options) (*Store, error) {
	if o.MeasureTime == nil {
		o.MeasureTime = func() func(time.Time, time.Duration) { return func(time.Time, time.Duration) {} }
	}
	s := &Store{options: o, attempted: make(chan struct{}), due: make(chan struct{}, 1)}
	var err error
	if s.metrics, err = newMetrics(s, o.Registerer); err != nil {
		return nil, err
	}
	s.problem.Store(&DatabaseError{Message: "the database was not reached yet"})
	s.creates = batcher[creation, verification.Created]{
		workers: &s.workers, maxConcurrent: maxConcurrentBatches, newFilter: newCreationFilter,
		sizes: s.metrics.batches.WithLabelValues(opCreate),
		run: func(ctx context.Context, calls []*call[creation, verification.Created]) {
			runOrSplit(ctx, calls, s.createAll)
		},
	}
	s.updates = batcher[change, bool]{
		workers: &s.workers, maxConcurrent: maxConcurrentBatches, sizes: s.metrics.batches.WithLabelValues(opUpdate),
		run: func(ctx context.Context, calls []*call[change, bool]) { runOrSplit(ctx, calls, s.updateAll) },
	}
	s.reads = batcher[string, *state]{
		workers: &s.workers, maxConcurrent: maxConcurrentBatches, sizes: s.metrics.batches.WithLabelValues(opRead),
		run: func(ctx context.Context, calls []*call[string, *state]) { runOrSplit(ctx, calls, s.readAll) },
	}
	s.primaryReads = batcher[string, *state]{
		workers: &s.workers, maxConcurrent: maxConcurrentBatches, sizes: s.metrics.batches.WithLabelValues(opCheck),
		run: func(ctx context.Context, calls []*call[string, *state]) { runOrSplit(ctx, calls, s.readAtPrimary) },
	}
	return s, nil
}

// Problem returns the reason why the database is not usable; nil if it is. It may be a few seconds old.
func (s *Store) Problem() error {
	if p := s.problem.Load(); p != nil {
		return p
	}
	return nil
}

// Due implements verification.Queue.
func (s *Store) Due() <-chan struct{} { return s.due }

// Ready implements verification.Store.
func (s *Store) Ready(ctx context.Context) error {
	return s.inTransaction(ctx, func(c *pgx.Conn) error {
		s.noteEncryption(c)
		_, err := c.Exec(ctx, sqlReady, s.options.Project)
		return wrapStep("check tables", err)
	})
}

// Unencrypted reports whether the connection of the last Ready crosses a network without TLS.
func (s *Store) Unencrypted() bool { return s.unencrypted.Load() }

func (s *Store) noteEncryption(c *pgx.Conn) {
	now := isExposed(c.PgConn().Conn())
	if before := s.unencrypted.Swap(now); now && !before {
		s.options.Log.Info("database connection is unencrypted")
	}
}

// Read implements verification.Store.
func (s *Store) Read(ctx context.Context, id string) (verification.Request, error) {
	return cloneRequest(s.readState(ctx, id))
}

// ReadFinal implements verification.Store. It always reads, in batches: a final state could be cached, but not whether the request is
// still stored.
func (s *Store) ReadFinal(ctx context.Context, id string) (verification.Request, error) {
	return cloneRequest(s.readState(ctx, id))
}

// ReadCached implements verification.Store.
func (s *Store) ReadCached(ctx context.Context, id string) (verification.Request, error) {
	return cloneRequest(s.readState(ctx, id))
}

// cloneRequest returns the request of a state that other callers may share.
func cloneRequest(read *state, err error) (verification.Request, error) {
	if err != nil {
		return verification.Request{}, err
	}
	return read.Clone(), nil
}

// readState returns the current state of a request, which the callers of one batch share.
func (s *Store) readState(ctx context.Context, id string) (*state, error) {
	return readFrom(ctx, &s.reads, id)
}

func readFrom(ctx context.Context, reads *batcher[string, *state], id string) (*state, error) {
	read, err := reads.do(ctx, id)
	if err == nil && read == nil {
		err = verification.ErrNotFound
	}
	return read, err
}

func (s *Store) readAll(ctx context.Context, calls []*call[string, *state]) error {
	return s.retryTransaction(ctx, func(c *pgx.Conn) error { return s.readCalls(ctx, c, calls) })
}

func (s *Store) readCalls(ctx context.Context, c *pgx.Conn, calls []*call[string, *state]) error {
	ids := make([]string, len(calls))
	for i, c := range calls {
		ids[i] = c.in
	}
	states, err := s.readRequests(ctx, c, ids)
	if err != nil {
		return err
	}
	for _, c := range calls {
		c.out = states[c.in]
	}
	return nil
}

// Awaiting implements verification.Store. A binding maps to the last request it was bound to, while that is stored and still has
// it among its contacts.
func (s *Store) Awaiting(ctx context.Context, binding string) (verification.Request, error) {
	var r verification.Request
	find := func(ctx context.Context, c *pgx.Conn) error {
		rows, _ := c.Query(ctx, sqlAwaiting, s.options.Project, binding) // rows holds the error, too
		read, err := pgx.CollectExactlyOneRow(rows, scanState)
		r = read.Request
		return wrapStep("read bound request", err)
	}
	absent := func(err error) bool {
		return errors.Is(err, pgx.ErrNoRows) || err == nil && r.BoundAt(binding).IsZero()
	}
	err := s.inTransaction(ctx, func(c *pgx.Conn) error { return find(ctx, c) })
	if absent(err) && s.synchronous.Load() {
		err = s.inWrite(ctx, func(ctx context.Context, c *pgx.Conn) error {
			if err := commitNothing(ctx, c); err != nil {
				return err
			}
			return find(ctx, c)
		})
	}
	switch {
	case absent(err):
		return verification.Request{}, verification.ErrNotFound
	case err != nil:
		return verification.Request{}, fmt.Errorf("find request of sender: %w", err)
	default:
		return r, nil
	}
}

// Stored implements verification.Counter. It counts up to MostCounted of each kind.
func (s *Store) Stored(ctx context.Context) (verification.Stored, error) {
	var stored verification.Stored
	err := s.inTransaction(ctx, func(c *pgx.Conn) error {
		err := c.QueryRow(ctx, sqlStored, s.options.Project, verification.MostCounted).
			Scan(&stored.Pending, &stored.Undelivered, &stored.Finished)
		return wrapStep("read counts", err)
	})
	if err != nil {
		return verification.Stored{}, fmt.Errorf("count requests: %w", err)
	}
	return stored, nil
}

// Subscribe implements verification.Store.
func (s *Store) Subscribe(id string) (<-chan struct{}, func()) { return s.watch.subscribe(id) }

// inTransaction runs a transaction for one caller, with retries. Its errors are pgx.ErrNoRows, those of ctx, or errors for callers
// of the store.
func (s *Store) inTransaction(ctx context.Context, f func(c *pgx.Conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := s.retryTransaction(ctx, f)
	switch {
	case err == nil, errors.Is(err, pgx.ErrNoRows):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return unavailableError(err)
	}
}

// intervalElapsed reports whether interval has passed since it last returned true. It returns true to one caller only.
func (s *Store) intervalElapsed(last *atomic.Int64, interval time.Duration) bool {
	now := time.Now().UnixNano()
	before := last.Load()
	return now-before >= int64(interval) && last.CompareAndSwap(before, now)
}
