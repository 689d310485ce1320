package server

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/google/uuid"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/phoneproof/phoneproof/controllers/projectstatus"
	"github.com/phoneproof/phoneproof/internal/redact"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/store/postgres"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// openDatabase returns the PostgreSQL store of the project, at the address in the settings.
func (s *server) openDatabase() (*postgres.Store, error) {
	store, err := postgres.New(postgres.Options{
		Project: s.project.Name(), Log: s.log.WithName("store"), Registerer: s.registry, MeasureTime: s.clock.beginMeasurement,
		Address: func() postgres.Address { return addressOf(s.current()) },
	})
	if err != nil {
		return nil, fmt.Errorf("create store: %w", err)
	}
	return store, nil
}

// addressOf returns the address of a project's database; empty without one. A store keeps its last address.
func addressOf(current *settings.Settings) postgres.Address {
	if current == nil || current.Database == nil {
		return postgres.Address{}
	}
	d := current.Database
	return postgres.Address{URI: redact.New(d.URI.Current()), OwnCA: d.OwnCA, CA: d.CA.Current()}
}

// newClaimLoop returns the loop that claims due requests while the process runs, with the store behind it: the store ends later, because
// the loop records its last attempts there.
func (s *server) newClaimLoop(
	ctx context.Context, store *postgres.Store, maySend func() bool, attempted func(verification.Attempt),
) (manager.Runnable, error) {
	loop, err := s.newRequestLoop(ctx, store, maySend)
	if err != nil {
		return nil, fmt.Errorf("create request loop: %w", err)
	}
	if attempted != nil {
		loop.Attempted = attempted
	}
	claims := startAttempted(store, manager.RunnableFunc(func(ctx context.Context) error { return loop.RunClaims(ctx, store) }))
	return manager.RunnableFunc(func(ctx context.Context) error { return RunBehind(ctx, claims, store) }), nil
}

// startAttempted returns a runnable that starts part when the store has connected, or failed to and logged why.
func startAttempted(store *postgres.Store, part manager.Runnable) manager.Runnable {
	return manager.RunnableFunc(func(ctx context.Context) error {
		store.AwaitAttempt(ctx)
		return part.Start(ctx)
	})
}

// newIdentity returns a name that is unique among the candidates for a lease.
func newIdentity() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("read host name: %w", err)
	}
	return host + "_" + uuid.NewString(), nil
}

// checkDatabase returns an error if no request can be stored in the database, for the project's conditions.
func (c *cluster) checkDatabase(ctx context.Context) error {
	err := c.database.Ready(ctx)
	if err == nil {
		err = c.database.CheckCommits()
	}
	if problem, ok := errors.AsType[*postgres.DatabaseError](err); ok {
		return &projectstatus.StorageError{Rejected: problem.Rejected, Message: problem.Message, Err: problem}
	}
	if err != nil {
		return fmt.Errorf("check database: %w", err)
	}
	return nil
}

// recordAttempt passes an attempt to the board of the current term. Without a term it does nothing.
func (c *cluster) recordAttempt(a verification.Attempt) {
	if board := c.board.Load(); board != nil {
		board.Attempted(a)
	}
}
