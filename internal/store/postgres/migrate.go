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

// The tables of goose have names of their own: the database may be shared with others who use it.
const (
	migrationsTable = "phoneproof_migrations"
	lockTable       = "phoneproof_migrations_lock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate makes the tables, or brings them up to date. The first replica does it under a row that is its lock, the others
// wait. A database that a newer version has migrated is left as it is: what that did suits us too.
func migrate(ctx context.Context, pool *pgxpool.Pool) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	locker, err := lock.NewPostgresTableLocker(
		lock.WithTableName(lockTable), lock.WithTableLockTimeout(250*time.Millisecond, 1200))
	if err != nil {
		return fmt.Errorf("make the lock of migrations: %w", err)
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
		return fmt.Errorf("look for migrations: %w", err)
	}
	if !pending {
		return nil
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return tune(ctx, pool)
}

// tune sets what only PostgreSQL knows.
func tune(ctx context.Context, pool *pgxpool.Pool) error {
	var version string
	if err := pool.QueryRow(ctx, sqlVersion).Scan(&version); err != nil {
		return fmt.Errorf("ask for the server's version: %w", err)
	}
	if !strings.HasPrefix(version, "PostgreSQL ") || strings.Contains(version, "-YB-") {
		return nil
	}
	if _, err := pool.Exec(ctx, sqlTune); err != nil {
		return fmt.Errorf("tune the tables: %w", err)
	}
	return nil
}
