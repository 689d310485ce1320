package server

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/google/uuid"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/phoneproof/phoneproof/controllers/projectstatus"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/store/postgres"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// database returns the store of a project that keeps its requests in PostgreSQL, at the address that the settings have.
func (s *server) database() (*postgres.Store, error) {
	return postgres.New(postgres.Options{
		Project: s.project.Name(), Log: s.log.WithName("store"), Registerer: s.registry, Clock: s.clock,
		Address: func() postgres.Address { return addressOf(s.current()) },
	})
}

// addressOf returns where the database of a project is. There may be none, or none any more: a store that has one keeps it.
func addressOf(current *settings.Settings) postgres.Address {
	if current == nil || current.Database == nil {
		return postgres.Address{}
	}
	d := current.Database
	return postgres.Address{URI: d.URI.Current(), OwnCA: d.OwnCA, CA: d.CA.Current()}
}

// claims returns the loop of a replica that claims what is due, for as long as the process runs.
func (s *server) claims(
	ctx context.Context, store *postgres.Store, maySend func() bool, attempted func(verification.Attempt),
) (manager.Runnable, error) {
	loop, err := s.requestLoop(ctx, store, maySend)
	if err != nil {
		return nil, err
	}
	if attempted != nil {
		loop.Attempted = attempted
	}
	return manager.RunnableFunc(func(ctx context.Context) error { return loop.Run(ctx, loop.Claims(store)) }), nil
}

// newIdentity tells this process from all others that campaign for a lease.
func newIdentity() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("read the host's name: %w", err)
	}
	return host + "_" + uuid.NewString(), nil
}

// databaseServes reports whether a request could be stored in the database, for the project's conditions.
func (c *cluster) databaseServes(ctx context.Context) error {
	err := c.database.Ready(ctx)
	if problem, ok := errors.AsType[*postgres.DatabaseError](err); ok {
		return &projectstatus.StorageError{Rejected: problem.Rejected, Message: problem.Message, Err: problem}
	}
	return err
}

// attempted passes an attempt to the board of the current term. Without a term nothing is reported.
func (c *cluster) attempted(a verification.Attempt) {
	if board := c.board.Load(); board != nil {
		board.Attempted(a)
	}
}
