package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

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

// endWithClient makes the server end a statement within a second after its connection was closed, for want of cancel requests. A commit
// that waits for a standby goes on. What does not know the setting ends the statement later.
func endWithClient(ctx context.Context, c *pgx.Conn) error {
	_, err := c.Exec(ctx, sqlEndWithClient)
	if _, refused := errors.AsType[*pgconn.PgError](err); refused {
		return nil
	}
	return wrapStep("set connection check", err)
}

// validateWriter rejects a server that takes no writes. One whose commits wait may be a former primary, and is used only if no other host
// of the URI takes writes.
func validateWriter(ctx context.Context, c *pgconn.PgConn) error {
	if err := pgconn.ValidateConnectTargetSessionAttrsReadWrite(ctx, c); err != nil {
		return fmt.Errorf("find writer: %w", err)
	}
	if commitsWait(ctx, c) {
		// To this one a writer is what it connects to if there is nothing better; pgx compares the type of the error.
		return pgconn.ValidateConnectTargetSessionAttrsPreferStandby(ctx, c) //nolint:wrapcheck
	}
	return nil
}

// commitsWait reports whether commits of a server wait for a standby. Not every database knows.
func commitsWait(ctx context.Context, c *pgconn.PgConn) bool {
	answer := c.ExecParams(ctx, sqlCommitsWait, nil, nil, nil, nil).Read()
	return answer.Err == nil && len(answer.Rows) == 1 && string(answer.Rows[0][0]) == "t"
}

// checkStandby returns errCommitsWait if commits wait for a standby. If a new connection leads to another primary, all others follow.
func checkStandby(ctx context.Context, pool *pgxpool.Pool) error {
	var wait bool
	if err := pool.QueryRow(ctx, sqlCommitsWait).Scan(&wait); err != nil || !wait {
		return nil //nolint:nilerr // as commitsWait has it
	}
	other, err := pgx.ConnectConfig(ctx, pool.Config().ConnConfig)
	if err != nil {
		return errCommitsWait
	}
	if !commitsWait(ctx, other.PgConn()) {
		pool.Reset()
	}
	_ = other.Close(ctx)
	return errCommitsWait
}

// CheckCommits returns an error while commits wait for a standby, although reads go on. Each further commit would be one more connection
// that waits in the server after its client has gone.
func (s *Store) CheckCommits() error {
	if s.problem.Load() == errCommitsWait {
		return errCommitsWait
	}
	return nil
}

// checkPrimary returns an error if the server cannot commit: then it may be a former primary, which lacks what the new one has.
func (s *Store) checkPrimary(ctx context.Context) error {
	_, err := s.checks.do(ctx, struct{}{})
	return err
}

// commitNothing commits a lock that nothing waits for, if the server has a synchronous standby.
func (s *Store) commitNothing(ctx context.Context, _ []*call[struct{}, struct{}]) error {
	return s.retryWrite(ctx, func(c *pgx.Conn) error {
		_, err := c.Exec(ctx, sqlCommitNothing)
		return wrapStep("commit nothing", err)
	})
}

// retryWrite is retryTransaction for what changes something.
func (s *Store) retryWrite(ctx context.Context, f func(c *pgx.Conn) error) error {
	if err := s.CheckCommits(); err != nil {
		return err
	}
	return s.retryTransaction(ctx, f)
}

// inWrite is inTransaction for what changes something.
func (s *Store) inWrite(ctx context.Context, f func(c *pgx.Conn) error) error {
	if err := s.CheckCommits(); err != nil {
		return unavailableError(err)
	}
	return s.inTransaction(ctx, f)
}
