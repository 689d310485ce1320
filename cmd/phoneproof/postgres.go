package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/google/uuid"

	"github.com/phoneproof/phoneproof/controllers/report"
	"github.com/phoneproof/phoneproof/internal/lease"
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

// serveFileFromDatabase serves the project of a file as one of many replicas. The holder of a lease in the database
// speaks to the messengers; what is due is claimed by all.
func (s *server) serveFileFromDatabase(ctx context.Context, source *settings.File) error {
	store, err := s.database()
	if err != nil {
		return err
	}
	inbound, err := s.channels(store)
	if err != nil {
		return err
	}
	claims, err := s.claims(ctx, store, func() bool { return true }, nil)
	if err != nil {
		return err
	}
	identity, err := newIdentity()
	if err != nil {
		return err
	}
	campaign, err := lease.New(lease.Options{
		Lock: store.Lock(identity), Name: leaseName(s.project.Name()), Times: s.options.lease, Log: s.log.WithName("lease"),
		Term: s.registerAlone(inbound, source.Subscribe).Start,
	})
	if err != nil {
		return err
	}
	return s.run(ctx, store, source, inbound, slices.Concat(s.dev.beside(source), []runnable{store, claims, campaign})...)
}

// claims returns the loop of a replica that claims what is due, for as long as the process runs.
func (s *server) claims(
	ctx context.Context, store *postgres.Store, maySend func() bool, attempted func(verification.Attempt),
) (runnable, error) {
	loop, err := s.requestLoop(ctx, store, maySend)
	if err != nil {
		return nil, err
	}
	if attempted != nil {
		loop.Attempted = attempted
	}
	return runnableFunc(func(ctx context.Context) error { return loop.Run(ctx, loop.Claims(store)) }), nil
}

// newIdentity tells this process from all others that campaign for a lease.
func newIdentity() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("read the host's name: %w", err)
	}
	return host + "_" + uuid.NewString(), nil
}

// databaseServes tells whether a request could be stored in the database, for the project's conditions.
func (c *cluster) databaseServes(ctx context.Context) error {
	err := c.database.Ready(ctx)
	if problem, ok := errors.AsType[*postgres.DatabaseError](err); ok {
		return &report.StorageError{Rejected: problem.Rejected, Message: problem.Message, Err: problem}
	}
	return err
}

// attempted tells the board of the present term of an attempt. Without a term nobody reports.
func (c *cluster) attempted(a verification.Attempt) {
	if board := c.board.Load(); board != nil {
		board.Attempted(a)
	}
}
