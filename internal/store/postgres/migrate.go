package postgres

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// The tables of goose have our own names: other users of goose may share the database.
const (
	migrationsTable = "phoneproof_migrations"
	lockTable       = "phoneproof_migrations_lock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate creates or updates the tables by the files of a version. A row serves as a lock: the first replica migrates and the others
// wait. A database that a newer version has migrated is left as it is, because migrations are backward compatible.
func migrate(ctx context.Context, pool *pgxpool.Pool, version fs.FS) error {
	files, err := fs.Sub(version, "migrations")
	if err != nil {
		return fmt.Errorf("open migrations: %w", err)
	}
	locker, err := lock.NewPostgresTableLocker(
		lock.WithTableName(lockTable), lock.WithTableLockTimeout(250*time.Millisecond, 1200))
	if err != nil {
		return fmt.Errorf("create migration lock: %w", err)
	}
	db := stdlib.OpenDBFromPool(pool)
	defer func() { _ = db.Close() }() // the pool stays open
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithLocker(locker), goose.WithTableName(migrationsTable), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	pending, err := provider.HasPending(ctx)
	if err != nil {
		return fmt.Errorf("find pending migrations: %w", err)
	}
	if !pending {
		return nil
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("apply migrations: %w", err)
	}
	return tuneTables(ctx, pool)
}

// tuneTables sets storage parameters that only PostgreSQL supports.
func tuneTables(ctx context.Context, pool *pgxpool.Pool) error {
	var version string
	if err := pool.QueryRow(ctx, sqlVersion).Scan(&version); err != nil {
		return fmt.Errorf("read server version: %w", err)
	}
	if !strings.HasPrefix(version, "PostgreSQL ") || strings.Contains(version, "-YB-") {
		return nil
	}
	if _, err := pool.Exec(ctx, sqlTune); err != nil {
		return fmt.Errorf("tune tables: %w", err)
	}
	return nil
}
