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

// Database is the witness of a database: a trigger records each state in the transaction that commits it.
type Database struct {
	// primary returns the server that takes writes: a failover changes it.
	primary func() *pgserver.Server
}

// WatchDatabase installs the witness. The table must exist and be empty.
func WatchDatabase(ctx context.Context, primary func() *pgserver.Server) (*Database, error) {
	for _, statement := range []string{
		`CREATE TABLE chaos_changes (n bigserial PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp(), op text NOT NULL,
			state phoneproof_requests NOT NULL)`,
		`CREATE FUNCTION chaos_note() RETURNS trigger LANGUAGE plpgsql AS $$
			DECLARE before phoneproof_requests := OLD; after phoneproof_requests := NEW;
			BEGIN
				IF TG_OP = 'UPDATE' THEN
					before.epoch := after.epoch; before.version := after.version; before.leased_until := after.leased_until;
					IF before IS NOT DISTINCT FROM after THEN RETURN NULL; END IF;
				END IF;
				INSERT INTO chaos_changes (op, state) VALUES (
					CASE TG_OP WHEN 'INSERT' THEN 'create' ELSE lower(TG_OP) END, CASE TG_OP WHEN 'DELETE' THEN before ELSE after END);
				RETURN NULL;
			END $$`,
		`CREATE TRIGGER chaos_note AFTER INSERT OR UPDATE OR DELETE ON phoneproof_requests FOR EACH ROW EXECUTE FUNCTION chaos_note()`,
	} {
		if err := primary().Exec(ctx, "postgres", statement); err != nil {
			return nil, fmt.Errorf("install witness: %w", err)
		}
	}
	return &Database{primary}, nil
}

// stateColumns are the columns that queryChanges reads.
const stateColumns = `(r).id, (r).phone, (r).actual, (r).method, (r).assurance, (r).verified_at, (r).phase, (r).attempts,
	(r).last_attempt_at, (r).last_status_code, (r).last_reason, (r).delivered_at IS NOT NULL, (r).exhausted_at IS NOT NULL,
	(r).next_attempt_at, (r).expires_at, (r).deliver, (r).code_state`

const storedQuery = `SELECT now(), NULL::timestamptz, 'update', ` + stateColumns + ` FROM phoneproof_requests AS r`

// changedQuery includes the time of each commit, which the database notes right before it writes the commit to its log.
const changedQuery = `SELECT at, committed, op, ` + stateColumns + ` FROM (
	SELECT n, at, pg_xact_commit_timestamp(xmin) AS committed, op, state AS r FROM chaos_changes) AS c ORDER BY n`

// Open implements Witness.
func (d *Database) Open(ctx context.Context) (int, error) {
	count := 0
	err := d.queryChanges(ctx, storedQuery+` WHERE phase = 'PENDING' OR phase = 'VERIFIED' AND delivered_at IS NULL AND exhausted_at IS NULL`,
		func(c ledger.Change) error {
			if isOpen(c, c.At) {
				count++
			}
			return nil
		})
	return count, err
}

// Conclude implements Witness.
func (d *Database) Conclude(ctx context.Context, dir string) error {
	return errors.Join(
		d.saveChanges(ctx, filepath.Join(dir, ledger.StoreFile), changedQuery),
		d.saveChanges(ctx, filepath.Join(dir, ledger.FinalFile), storedQuery),
	)
}

func (d *Database) saveChanges(ctx context.Context, path, statement string) error {
	to, err := ledger.Create(path)
	if err != nil {
		return err
	}
	err = d.queryChanges(ctx, statement, func(c ledger.Change) error { return to.Note(c) })
	return errors.Join(err, to.Close())
}

// queryChanges calls each with every row.
func (d *Database) queryChanges(ctx context.Context, statement string, each func(ledger.Change) error) error {
	conn, err := pgx.Connect(ctx, d.primary().URI("postgres"))
	if err != nil {
		return fmt.Errorf("connect to database: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }() // only read from
	rows, err := conn.Query(ctx, statement)
	if err != nil {
		return fmt.Errorf("query changes: %w", err)
	}
	var (
		c                                ledger.Change
		committed, verified, tried, next *time.Time
	)
	into := []any{
		&c.At, &committed, &c.Op, &c.ID, &c.Phone, &c.Actual, &c.Method, &c.Assurance, &verified, &c.Phase, &c.Attempts,
		&tried, &c.Code, &c.Reason, &c.Delivered, &c.Exhausted, &next, &c.Expires,
		&c.Deliver, &c.CodeState,
	}
	_, err = pgx.ForEachRow(rows, into, func() error {
		c.Committed, c.Verified, c.Tried, c.Next = orZero(committed), orZero(verified), orZero(tried), orZero(next)
		return each(c)
	})
	return err
}

// orZero returns the time; zero for nil.
func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
