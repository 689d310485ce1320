package server

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/phoneproof/phoneproof/internal/leader"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// serveFile serves the project of a file, from memory or, if it has one, from a database.
func (s *server) serveFile(ctx context.Context) error {
	source := s.dependencies.Settings
	if source == nil {
		var err error
		source, err = settings.NewFile(s.options.ProjectFile, s.options.SecretsDir, clock.RealClock{}, s.log.WithName("settings"))
		if err != nil {
			return fmt.Errorf("read settings: %w", err)
		}
	}
	s.project, s.current = verification.NewCodeSpace(source.Current().Project), source.Current
	inDatabase := source.Current().Database != nil
	switch {
	case inDatabase && s.options.Store != StoreMemory:
		s.options.Store = StorePostgreSQL
		return s.serveFileFromDatabase(ctx, source)
	case s.options.Store == StorePostgreSQL:
		return errors.New("--store is postgresql, and the project has no database: set spec.storage.type to PostgreSQL, " +
			"and spec.storage.postgresql.uriSecretRef")
	}
	s.options.Store = StoreMemory
	store := s.dependencies.Memory.Open(s.project.Name())
	loop, err := s.newRequestLoop(ctx, store, func() bool { return true })
	if err != nil {
		return fmt.Errorf("create request loop: %w", err)
	}
	inbound, err := s.newChannels(store)
	if err != nil {
		return fmt.Errorf("create messenger channels: %w", err)
	}
	claims := manager.RunnableFunc(func(ctx context.Context) error { return loop.RunClaims(ctx, store) })
	return s.run(ctx, store, source, inbound, claims, s.registerAlone(inbound, source.Subscribe))
}

// serveFileFromDatabase serves the project of a file as one of several replicas. All replicas claim due requests; the holder of
// a lease in the database registers the callbacks.
func (s *server) serveFileFromDatabase(ctx context.Context, source *settings.File) error {
	store, err := s.openDatabase()
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	inbound, err := s.newChannels(store)
	if err != nil {
		return fmt.Errorf("create messenger channels: %w", err)
	}
	claims, err := s.newClaimLoop(ctx, store, func() bool { return true }, nil)
	if err != nil {
		return fmt.Errorf("create claim loop: %w", err)
	}
	identity, err := newIdentity()
	if err != nil {
		return fmt.Errorf("name this candidate: %w", err)
	}
	elector, err := leader.New(leader.Options{
		Lock: store.Lock(identity), Name: leader.ProjectLease(s.project.Name()), Times: s.options.Lease, Log: s.log.WithName("lease"),
		Term: s.registerAlone(inbound, source.Subscribe).Start,
	})
	if err != nil {
		return fmt.Errorf("create elector: %w", err)
	}
	return s.run(ctx, store, source, inbound, claims, startAttempted(store, elector))
}
