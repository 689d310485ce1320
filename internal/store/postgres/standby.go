package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// errCommitsWait is the problem of a primary that gets no answer from its synchronous standby.
var errCommitsWait = &DatabaseError{Message: "commits wait for the synchronous standby of the database, which does not answer"}

// errUnavailable matches the errors of a database that does not serve.
var errUnavailable = &verification.Error{Code: verification.CodeStoreUnavailable}

// errNoCancel is the error of a cancel request, which is never sent.
var errNoCancel = errors.New("no statement is cancelled")

// refuseCancels keeps a connection from sending cancel requests, as pgx does for each one that breaks or times out. PostgreSQL cancels
// the wait of a commit for its standby by keeping the commit without it: others would then be shown what a failover loses.
func refuseCancels(_ context.Context, config *pgx.ConnConfig) error {
	var connected atomic.Pointer[pgconn.PgConn]
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if c := connected.Load(); c != nil {
			_ = c.Conn().Close() // pgx would wait 15 s for the server to end, and keep a place in the pool
			return nil, errNoCancel
		}
		return dial(ctx, network, address)
	}
	config.AfterConnect = func(_ context.Context, c *pgconn.PgConn) error {
		connected.Store(c)
		return nil
	}
	return nil
}

// endWithClient makes the server end a statement within a second after its connection was closed, as nothing cancels it, and a transaction
// whose client vanished without closing it. A commit that waits for a standby goes on. Servers that do not know a setting end them later.
func endWithClient(ctx context.Context, c *pgx.Conn) error {
	for _, statement := range [...]string{sqlEndWithClient, sqlEndWhenIdle} {
		_, err := c.Exec(ctx, statement)
		if _, refused := errors.AsType[*pgconn.PgError](err); err != nil && !refused {
			return wrapStep("set connection check", err)
		}
	}
	return nil
}

// validateWriter rejects a server that takes no writes, and, while this replica leaves a former primary, that one.
func (s *Store) validateWriter(ctx context.Context, c *pgconn.PgConn) error {
	if err := pgconn.ValidateConnectTargetSessionAttrsReadWrite(ctx, c); err != nil {
		return fmt.Errorf("find writer: %w", err)
	}
	if s.leaving.Load() && commitsWaitAt(ctx, c) {
		return errCommitsWait
	}
	return nil
}

// commitsWaitAt is commitsWait for a connection that is being made.
func commitsWaitAt(ctx context.Context, c *pgconn.PgConn) bool {
	answer := c.ExecParams(ctx, sqlStandby, nil, nil, nil, nil).Read()
	return answer.Err == nil && len(answer.Rows) == 1 && string(answer.Rows[0][0]) == "t"
}

// commitsWait reports whether commits wait for a standby. A database without the view has none.
func commitsWait(ctx context.Context, pool *pgxpool.Pool) (wait bool) {
	err := pool.QueryRow(ctx, sqlStandby).Scan(&wait)
	return err == nil && wait
}

// findPrimary looks for another primary, to which all connections follow. Without one they stay, for reads, and it returns errCommitsWait.
func (s *Store) findPrimary(ctx context.Context, pool *pgxpool.Pool) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	config := pool.Config().ConnConfig
	config.ConnectTimeout = time.Second // for each host, of which one may be dead
	config.ValidateConnect = func(ctx context.Context, c *pgconn.PgConn) error {
		if commitsWaitAt(ctx, c) {
			return errCommitsWait
		}
		return pgconn.ValidateConnectTargetSessionAttrsReadWrite(ctx, c)
	}
	other, err := pgx.ConnectConfig(ctx, config)
	s.leaving.Store(err == nil)
	if err != nil {
		return errCommitsWait
	}
	_ = other.Close(ctx)
	pool.Reset()
	if pool.Ping(ctx) != nil || commitsWait(ctx, pool) {
		return errCommitsWait
	}
	return nil
}

// CheckCommits returns an error while commits wait for a standby, although reads go on. Each further commit would be one more connection
// that waits in the server after its client has gone.
func (s *Store) CheckCommits() error {
	if s.problem.Load() == errCommitsWait {
		return errCommitsWait
	}
	return nil
}

// readAtPrimary is readAll, after a commit over the same connection. It fails at a former primary, which cannot commit, and lacks what the
// new one has.
func (s *Store) readAtPrimary(ctx context.Context, calls []*call[string, *state]) error {
	return s.retryWrite(ctx, func(c *pgx.Conn) error {
		if err := commitNothing(ctx, c); err != nil {
			return err
		}
		return s.readCalls(ctx, c, calls)
	})
}

// commitNothing commits a lock that nothing waits for, if the server has a synchronous standby.
func commitNothing(ctx context.Context, c *pgx.Conn) error {
	_, err := c.Exec(ctx, sqlCommitNothing)
	return wrapStep("commit nothing", err)
}

// retryWrite is retryTransaction for what changes something.
func (s *Store) retryWrite(ctx context.Context, f func(c *pgx.Conn) error) error {
	if err := s.CheckCommits(); err != nil {
		return err
	}
	return s.retryTransaction(ctx, f)
}

// inWrite is inTransaction for what changes something. It gives up after batchTimeout: at a former primary a commit never ends.
func (s *Store) inWrite(ctx context.Context, f func(ctx context.Context, c *pgx.Conn) error) error {
	if err := s.CheckCommits(); err != nil {
		return unavailableError(err)
	}
	limited, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()
	err := s.inTransaction(limited, func(c *pgx.Conn) error { return f(limited, c) })
	if limited.Err() != nil && ctx.Err() == nil && errors.Is(err, limited.Err()) {
		return unavailableError(err)
	}
	return err
}
