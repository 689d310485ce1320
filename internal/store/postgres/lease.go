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

// Lock returns the project's lease, stored as a row, for processes without a cluster. Each candidate needs a unique identity.
func (s *Store) Lock(identity string) resourcelock.Interface {
	return &leaseLock{store: s, identity: identity}
}

// leaseLock is a lease stored as a row. It is used by one elector and is not safe for concurrent use.
type leaseLock struct {
	store    *Store
	identity string
	// version is the version of the record that was last read or written. An update of another version fails.
	version int64
}

// Get returns the record of the lease. If there is none, it returns NotFound as an API server does, because electors expect it.
func (l *leaseLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	var raw []byte
	err := l.store.inTransaction(ctx, func(c *pgx.Conn) error {
		var text string
		err := c.QueryRow(ctx, sqlReadLease, l.store.options.Project).Scan(&text, &l.version)
		raw = []byte(text)
		return wrapStep("read lease", err)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "phoneproof_leases"}, l.store.options.Project)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("fetch lease: %w", err)
	}
	record := &resourcelock.LeaderElectionRecord{}
	if err := json.Unmarshal(raw, record); err != nil {
		return nil, nil, fmt.Errorf("decode lease record: %w", err)
	}
	return record, raw, nil
}

// Create creates the lease. It returns verification.ErrConflict if the lease exists.
func (l *leaseLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.writeRecord(ctx, sqlCreateLease, record)
}

// Update changes the lease. It returns verification.ErrConflict if the lease has changed since it was read.
func (l *leaseLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.writeRecord(ctx, sqlUpdateLease, record, l.version)
}

func (l *leaseLock) writeRecord(ctx context.Context, statement string, record resourcelock.LeaderElectionRecord, more ...any) error {
	raw, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("encode lease record: %w", err)
	}
	var written bool
	err = l.store.inWrite(ctx, func(ctx context.Context, c *pgx.Conn) error {
		tag, err := c.Exec(ctx, statement, append([]any{l.store.options.Project, string(raw)}, more...)...)
		written = tag.RowsAffected() > 0
		return wrapStep("write lease", err)
	})
	switch {
	case err != nil:
		return fmt.Errorf("store lease: %w", err)
	case !written:
		return verification.ErrConflict
	case statement == sqlCreateLease:
		l.version = 1
	default:
		l.version++
	}
	return nil
}

// RecordEvent does nothing: without a cluster there are no Events.
func (l *leaseLock) RecordEvent(string) {}

// Identity returns the identity of the candidate.
func (l *leaseLock) Identity() string { return l.identity }

// Describe names the lease for logs.
func (l *leaseLock) Describe() string { return l.store.options.Project }
