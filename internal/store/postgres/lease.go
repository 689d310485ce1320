package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// Lock returns the project's lease as a row, for processes without a cluster. Candidates must have identities of their own.
func (s *Store) Lock(identity string) resourcelock.Interface {
	return &leaseLock{store: s, identity: identity}
}

// leaseLock is a lease as a row. It is used by one elector, one call after another.
type leaseLock struct {
	store    *Store
	identity string
	// version is that of the record which was read or written last; an update is from it or fails.
	version int64
}

// Get returns the record of the lease; as electors expect it, an error of the API where there is none.
func (l *leaseLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	var raw []byte
	err := l.store.once(ctx, func(c *pgx.Conn) error {
		var text string
		err := c.QueryRow(ctx, sqlReadLease, l.store.options.Project).Scan(&text, &l.version)
		raw = []byte(text)
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "phoneproof_leases"}, l.store.options.Project)
	}
	if err != nil {
		return nil, nil, err
	}
	record := &resourcelock.LeaderElectionRecord{}
	if err := json.Unmarshal(raw, record); err != nil {
		return nil, nil, fmt.Errorf("read the record of the lease: %w", err)
	}
	return record, raw, nil
}

// Create makes the lease.
func (l *leaseLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, sqlCreateLease, record)
}

// Update changes the lease, unless somebody else did since it was read.
func (l *leaseLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, sqlUpdateLease, record, l.version)
}

func (l *leaseLock) write(ctx context.Context, statement string, record resourcelock.LeaderElectionRecord, more ...any) error {
	raw, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("write the record of the lease: %w", err)
	}
	var written bool
	err = l.store.once(ctx, func(c *pgx.Conn) error {
		tag, err := c.Exec(ctx, statement, append([]any{l.store.options.Project, string(raw)}, more...)...)
		written = tag.RowsAffected() > 0
		return err
	})
	switch {
	case err != nil:
		return err
	case !written:
		return verification.ErrConflict
	case statement == sqlCreateLease:
		l.version = 1
	default:
		l.version++
	}
	return nil
}

// RecordEvent tells nobody: there is no cluster to tell.
func (l *leaseLock) RecordEvent(string) {}

// Identity returns the candidate's own.
func (l *leaseLock) Identity() string { return l.identity }

// Describe names the lease for logs.
func (l *leaseLock) Describe() string { return l.store.options.Project }
