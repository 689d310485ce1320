package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// minConns and maxConns bound the pool on any machine: batches need few connections, and a database has a few hundred
	// for all replicas of all projects.
	minConns = 6
	maxConns = 16
	// maxConnsInURI is the largest pool that a URI may ask for: it leaves ten of PostgreSQL's default of 100 connections.
	maxConnsInURI = 90

	connectTimeout = 5 * time.Second
	// healthInterval is the interval of connection checks, and the longest delay before a new address is used.
	healthInterval = time.Second

	// maxRetries bounds the attempts of a transaction, with a pause of up to maxRetryPause between them.
	maxRetries    = 50
	maxRetryPause = 50 * time.Millisecond
)

// poolConfig returns the pool configuration of an address. It sets what a URI must not decide.
func poolConfig(a Address) (*pgxpool.Config, error) {
	config, err := a.parse()
	if err != nil {
		return nil, err
	}
	if !bytes.Contains(a.URI.Reveal(), []byte("pool_max_conns")) {
		config.MaxConns = int32(min(max(minConns, 4*runtime.GOMAXPROCS(0)), maxConns))
	}
	if config.MaxConns > maxConnsInURI {
		return nil, errTooManyConns
	}
	config.MaxConnLifetimeJitter = config.MaxConnLifetime / 4
	config.PingTimeout = time.Second
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	config.BeforeConnect = refuseCancels
	return config, nil
}

// checkServer rejects a server that acknowledges commits that it may lose.
func (s *Store) checkServer(ctx context.Context, c *pgx.Conn) error {
	_, commit, synchronous, err := s.readServer(c.QueryRow(ctx, sqlServer))
	if err != nil {
		return err
	}
	if commit == "off" || commit == "local" && synchronous {
		return &DatabaseError{
			Rejected: true, Message: "the database has synchronous_commit=" + commit + ", which loses what it has acknowledged; turn it on",
		}
	}
	return endWithClient(ctx, c)
}

// readServer reads the answer to sqlServer, and notes that there is a synchronous standby.
func (s *Store) readServer(answer pgx.Row) (now time.Time, commit string, synchronous bool, err error) {
	err = answer.Scan(&now, &commit, &synchronous)
	if synchronous {
		s.synchronous.Store(true)
	}
	return now, commit, synchronous, wrapStep("read settings", err)
}

// closingMessage is the error message of a store that is shutting down.
const closingMessage = "the store is closing"

// Start connects the store and keeps it connected until ctx ends: it migrates the tables, follows changes of the address,
// and notifies subscribers of changes by other replicas.
func (s *Store) Start(ctx context.Context) error {
	polling, stop := context.WithCancel(ctx)
	s.workers.Go(func() { s.pollUntilDone(polling) })
	defer func() {
		stop()
		s.problem.Store(&DatabaseError{Message: closingMessage})
		if pool := s.pool.Swap(nil); pool != nil {
			pool.Close()
		}
		s.workers.Wait()
	}()
	ticker := time.NewTicker(healthInterval)
	defer ticker.Stop()
	used := s.followAddress(ctx, Address{})
	close(s.attempted)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			used = s.followAddress(ctx, used)
		}
	}
}

// AwaitAttempt returns when Start has connected or logged why it did not, or when ctx ends.
func (s *Store) AwaitAttempt(ctx context.Context) {
	select {
	case <-s.attempted:
	case <-ctx.Done():
	}
}

// followAddress connects to a changed address, else it checks the connection. It returns the address in use.
func (s *Store) followAddress(ctx context.Context, used Address) Address {
	next := s.options.Address()
	switch missing := next.findMissing(); {
	case missing != nil && s.pool.Load() == nil:
		s.recordProblem(missing)
	case missing != nil, next.equal(used):
		s.recordProblem(s.checkConnection(ctx))
	default:
		err := s.connectPool(ctx, next)
		if err == nil {
			return next.clone()
		}
		if s.pool.Load() != nil {
			if waits := s.checkConnection(ctx); errors.Is(waits, errCommitsWait) {
				err = waits
			}
		}
		s.recordProblem(err)
	}
	return used
}

// checkConnection checks that the connected database answers, and commits.
func (s *Store) checkConnection(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	pool := s.pool.Load()
	if err := s.readDatabaseTime(asking, pool); err != nil {
		s.leaving.Store(false)
		return err
	}
	if !s.synchronous.Load() || !commitsWait(asking, pool) {
		return nil
	}
	return s.findPrimary(ctx, pool)
}

// readDatabaseTime records the database's time in the store clock. An answer also shows that the database is alive.
func (s *Store) readDatabaseTime(ctx context.Context, pool *pgxpool.Pool) error {
	finish := s.options.MeasureTime()
	now, _, _, err := s.readServer(pool.QueryRow(ctx, sqlServer))
	if err != nil {
		return err
	}
	finish(now, 0)
	return nil
}

// recordProblem records the database's current problem, nil for none, and logs it if it changed.
func (s *Store) recordProblem(err error) {
	before := s.problem.Load()
	if err == nil {
		if before != nil {
			s.problem.Store(nil)
			s.options.Log.Info("database available")
		}
		return
	}
	p := asDatabaseError(err)
	if before == nil || before.Message != p.Message {
		s.options.Log.Error(p, "the database does not serve")
	}
	s.problem.Store(p)
}

// connectPool opens a pool for the address and replaces the former one if the new one works. Until then the former one stays in
// use: a wrong password in the Secret must not break a working store.
func (s *Store) connectPool(ctx context.Context, a Address) error {
	config, err := poolConfig(a)
	if err != nil {
		return fmt.Errorf("read address: %w", err)
	}
	config.ConnConfig.ValidateConnect = s.validateWriter // whatever target_session_attrs the URI has
	config.AfterConnect = s.checkServer
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("open pool: %w", err)
	}
	if err := s.preparePool(ctx, pool); err != nil {
		pool.Close()
		return fmt.Errorf("prepare pool: %w", err)
	}
	former := s.pool.Swap(pool)
	s.recordProblem(nil)
	if former != nil {
		s.options.Log.Info("database address changed")
		s.workers.Go(former.Close) // waits for connections in use
	}
	return nil
}

func (s *Store) preparePool(ctx context.Context, pool *pgxpool.Pool) error {
	pinging, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := s.readDatabaseTime(pinging, pool); err != nil {
		return fmt.Errorf("reach database: %w", err)
	}
	return migrate(ctx, pool, migrations)
}

// retryTransaction runs a transaction until it succeeds or fails with an error that no retry can resolve.
func (s *Store) retryTransaction(ctx context.Context, f func(c *pgx.Conn) error) error {
	for attempt := 1; ; attempt++ {
		err := s.runTransaction(ctx, f)
		if !isRetryable(err) || attempt == maxRetries {
			return err
		}
		s.metrics.retries.Inc()
		pause := rand.N(min(time.Duration(attempt)*time.Millisecond, maxRetryPause)) //nolint:gosec // jitter
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(ctx.Err(), withSteps(err, asDatabaseError(err)))
		case <-timer.C:
		}
	}
}

// runTransaction runs f once, and rolls back any transaction that f leaves open.
func (s *Store) runTransaction(ctx context.Context, f func(c *pgx.Conn) error) error {
	pool := s.pool.Load()
	if pool == nil {
		if p := s.problem.Load(); p != nil {
			return p
		}
		return &DatabaseError{Message: "the database was not reached yet"}
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		if strings.Contains(err.Error(), "closed pool") { // the address has just changed
			return errRetry
		}
		return wrapStep("acquire connection", err)
	}
	defer conn.Release()
	err = f(conn.Conn())
	if err != nil && !conn.Conn().IsClosed() && conn.Conn().PgConn().TxStatus() != 'I' {
		if _, rolled := conn.Exec(ctx, sqlRollback); rolled != nil {
			return errors.Join(err, conn.Conn().Close(ctx))
		}
	}
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok && refusal.Code == stateReadOnly {
		pool.Reset() // after a failover: reconnect to the new writer
	}
	return err
}

// readRequests reads requests by their ids.
func (s *Store) readRequests(ctx context.Context, c *pgx.Conn, ids []string) (map[string]*state, error) {
	rows, _ := c.Query(ctx, sqlRead, s.options.Project, ids) // rows holds the error, too
	states := make(map[string]*state, len(ids))
	return states, collectStates(rows, states)
}

// collectStates adds the states in rows to states, by their ids.
func collectStates(rows pgx.Rows, states map[string]*state) error {
	list, err := pgx.CollectRows(rows, newStateScanner().scan)
	for i := range list {
		states[list[i].ID] = &list[i]
	}
	return wrapStep("read requests", err)
}
