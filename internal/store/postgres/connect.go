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
	// minConns and mostConns bound the pool, whatever the machine has: batches make few connections go far, and a
	// database has some hundred for all replicas of all projects.
	minConns  = 6
	mostConns = 16

	connectTimeout = 5 * time.Second
	// health is how often the connection is looked at, and how soon a new address is taken.
	health = time.Second

	// mostRepeats bounds how often a transaction is repeated, with a pause of up to longestPause between.
	mostRepeats  = 50
	longestPause = 50 * time.Millisecond
)

// poolConfig reads an address. What a URI must not decide is set here: only the writer will do.
func poolConfig(a Address) (*pgxpool.Config, error) {
	config, err := a.parse()
	if err != nil {
		return nil, err
	}
	if !bytes.Contains(a.URI, []byte("pool_max_conns")) {
		config.MaxConns = int32(min(max(minConns, 4*runtime.GOMAXPROCS(0)), mostConns))
	}
	config.MaxConnLifetimeJitter = config.MaxConnLifetime / 4
	config.PingTimeout = time.Second
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	config.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	config.AfterConnect = checkServer
	return config, nil
}

// checkServer refuses a server that would acknowledge what it may lose.
func checkServer(ctx context.Context, c *pgx.Conn) error {
	var synchronous string
	if err := c.QueryRow(ctx, sqlServer).Scan(&synchronous); err != nil {
		return err
	}
	if synchronous == "off" {
		return &DatabaseError{Rejected: true, Message: "the database has synchronous_commit=off, which loses what it has acknowledged; turn it on"}
	}
	return nil
}

// closing is what is wrong with a store that ends.
const closing = "the store is closing"

// Start connects the store and keeps it connected until ctx ends: it makes or changes the tables, takes a new address,
// and tells subscribers of what other replicas changed.
func (s *Store) Start(ctx context.Context) error {
	polling, stop := context.WithCancel(ctx)
	s.crew.Go(func() { s.pollUntilDone(polling) })
	defer func() {
		stop()
		s.problem.Store(&DatabaseError{Message: closing})
		if pool := s.pool.Swap(nil); pool != nil {
			pool.Close()
		}
		s.crew.Wait()
	}()
	var address Address
	ticker := time.NewTicker(health)
	defer ticker.Stop()
	for {
		next := s.options.Address()
		switch missing := next.missing(); {
		case missing != nil && s.pool.Load() == nil:
			s.note(missing)
		case missing != nil, next.equal(address):
			s.note(s.check(ctx))
		default:
			if err := s.connect(ctx, next); err == nil {
				address = next.clone()
			} else {
				s.note(err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// check asks the database that the store is connected to for a sign of life.
func (s *Store) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return s.askTime(ctx, s.pool.Load())
}

// askTime asks the database for its time, which is a sign of life.
func (s *Store) askTime(ctx context.Context, pool *pgxpool.Pool) error {
	told := s.options.Clock.BeginMeasurement()
	var now time.Time
	if err := pool.QueryRow(ctx, sqlNow).Scan(&now); err != nil {
		return err
	}
	told(now, 0)
	return nil
}

// note keeps the latest news of the database, and logs them where they are news.
func (s *Store) note(err error) {
	before := s.problem.Load()
	if err == nil {
		if before != nil {
			s.problem.Store(nil)
			s.options.Log.Info("the database serves")
		}
		return
	}
	p := problem(err)
	if before == nil || before.Message != p.Message {
		s.options.Log.Error(p, "the database does not serve")
	}
	s.problem.Store(p)
}

// connect opens a pool for the address and puts it in the place of the former one, if it works. Until then the former one
// serves: a password that is wrong in the Secret must not break what works.
func (s *Store) connect(ctx context.Context, a Address) error {
	config, err := poolConfig(a)
	if err != nil {
		return err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("open pool: %w", err)
	}
	if err := s.prepare(ctx, pool); err != nil {
		pool.Close()
		return err
	}
	former := s.pool.Swap(pool)
	s.note(nil)
	if former != nil {
		s.options.Log.Info("the database's address changed")
		s.crew.Go(former.Close) // it waits for what is on its way
	}
	return nil
}

func (s *Store) prepare(ctx context.Context, pool *pgxpool.Pool) error {
	pinging, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := s.askTime(pinging, pool); err != nil {
		return err
	}
	return migrate(ctx, pool)
}

// repeat runs a transaction until it is through, or cannot be.
func (s *Store) repeat(ctx context.Context, f func(c *pgx.Conn) error) error {
	for try := 1; ; try++ {
		err := s.transact(ctx, f)
		if !repeatable(err) || try == mostRepeats {
			return err
		}
		s.metrics.repeats.Inc()
		pause := rand.N(min(time.Duration(try)*time.Millisecond, longestPause)) //nolint:gosec // jitter
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(ctx.Err(), problem(err))
		case <-timer.C:
		}
	}
}

// transact runs f once, on a connection that it leaves clean.
func (s *Store) transact(ctx context.Context, f func(c *pgx.Conn) error) error {
	pool := s.pool.Load()
	if pool == nil {
		if p := s.problem.Load(); p != nil {
			return p
		}
		return &DatabaseError{Message: "the database was not reached yet"}
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		if strings.Contains(err.Error(), "closed pool") { // the address was changed just now
			return errRepeat
		}
		return err
	}
	defer conn.Release()
	err = f(conn.Conn())
	if err != nil && !conn.Conn().IsClosed() && conn.Conn().PgConn().TxStatus() != 'I' {
		if _, rolled := conn.Exec(ctx, sqlRollback); rolled != nil {
			return errors.Join(err, conn.Conn().Close(ctx))
		}
	}
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok && refusal.Code == stateReadOnly {
		pool.Reset() // the server was the writer once: find the new one
	}
	return err
}

// fetch reads requests by their ids.
func (s *Store) fetch(ctx context.Context, c *pgx.Conn, ids []string) (map[string]state, error) {
	rows, err := c.Query(ctx, sqlRead, s.options.Project, ids)
	if err != nil {
		return nil, err
	}
	return collect(rows)
}

func collect(rows pgx.Rows) (map[string]state, error) {
	states := make(map[string]state)
	list, err := pgx.CollectRows(rows, scan)
	for _, st := range list {
		states[st.ID] = st
	}
	return states, err
}
