package witness

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/phoneproof/phoneproof/test/chaos/ledger"
	"github.com/phoneproof/phoneproof/test/pgserver"
)

// Database is the witness of a database: a trigger writes each state down in the transaction that commits it.
type Database struct{ server *pgserver.Server }

// WatchDatabase installs the witness. The tables must be there, and no request yet.
func WatchDatabase(ctx context.Context, server *pgserver.Server) (*Database, error) {
	for _, statement := range []string{
		`CREATE TABLE chaos_changes (n bigserial PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp(), op text NOT NULL,
			id text NOT NULL, phase text NOT NULL, attempts bigint NOT NULL, code bigint NOT NULL, delivered boolean NOT NULL,
			exhausted boolean NOT NULL, next timestamptz, expires timestamptz NOT NULL)`,
		`CREATE FUNCTION chaos_note() RETURNS trigger LANGUAGE plpgsql AS $$
			DECLARE r phoneproof_requests := CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
			BEGIN
				IF TG_OP = 'UPDATE' AND OLD.phase = NEW.phase AND OLD.attempts = NEW.attempts
					AND OLD.delivered_at IS NOT DISTINCT FROM NEW.delivered_at AND OLD.exhausted_at IS NOT DISTINCT FROM NEW.exhausted_at
				THEN RETURN NULL; END IF;
				INSERT INTO chaos_changes (op, id, phase, attempts, code, delivered, exhausted, next, expires)
				VALUES (CASE TG_OP WHEN 'INSERT' THEN 'create' ELSE lower(TG_OP) END, r.id, r.phase, r.attempts, r.last_status_code,
					r.delivered_at IS NOT NULL, r.exhausted_at IS NOT NULL, r.next_attempt_at, r.expires_at);
				RETURN NULL;
			END $$`,
		`CREATE TRIGGER chaos_note AFTER INSERT OR UPDATE OR DELETE ON phoneproof_requests FOR EACH ROW EXECUTE FUNCTION chaos_note()`,
	} {
		if err := server.Exec(ctx, "postgres", statement); err != nil {
			return nil, fmt.Errorf("watch the database: %w", err)
		}
	}
	return &Database{server: server}, nil
}

const stored = `SELECT now(), 'update', id, phase, attempts, last_status_code, delivered_at IS NOT NULL, exhausted_at IS NOT NULL,
	next_attempt_at, expires_at FROM phoneproof_requests`

// Open implements Witness.
func (d *Database) Open(ctx context.Context) (int, error) {
	count := 0
	err := d.query(ctx, stored+` WHERE phase = 'PENDING' OR phase = 'VERIFIED' AND delivered_at IS NULL AND exhausted_at IS NULL`,
		func(c ledger.Change) error {
			if open(c, c.At) {
				count++
			}
			return nil
		})
	return count, err
}

// Conclude implements Witness.
func (d *Database) Conclude(ctx context.Context, dir string) error {
	return errors.Join(
		d.save(ctx, filepath.Join(dir, ledger.StoreFile),
			`SELECT at, op, id, phase, attempts, code, delivered, exhausted, next, expires FROM chaos_changes ORDER BY n`),
		d.save(ctx, filepath.Join(dir, ledger.FinalFile), stored),
	)
}

func (d *Database) save(ctx context.Context, path, statement string) error {
	to, err := ledger.Create(path)
	if err != nil {
		return err
	}
	err = d.query(ctx, statement, func(c ledger.Change) error { return to.Note(c) })
	return errors.Join(err, to.Close())
}

// query calls each with every row.
func (d *Database) query(ctx context.Context, statement string, each func(ledger.Change) error) error {
	conn, err := pgx.Connect(ctx, d.server.URI("postgres"))
	if err != nil {
		return fmt.Errorf("ask the database: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }() // it was only asked
	rows, err := conn.Query(ctx, statement)
	if err != nil {
		return fmt.Errorf("ask the database: %w", err)
	}
	var (
		c    ledger.Change
		next *time.Time
	)
	into := []any{&c.At, &c.Op, &c.ID, &c.Phase, &c.Attempts, &c.Code, &c.Delivered, &c.Exhausted, &next, &c.Expires}
	_, err = pgx.ForEachRow(rows, into, func() error {
		c.Next = time.Time{}
		if next != nil {
			c.Next = *next
		}
		return each(c)
	})
	return err
}
