package main

import (
	"context"
	"fmt"

	"github.com/phoneproof/phoneproof/test/pgserver"
)

// The operations whose transactions can fail, independently of each other.
const (
	opInsert = "insert"
	opUpdate = "update"
	opClaim  = "claim"
)

// refusal is the text of the errors at COMMIT.
const refusal = "a fault at COMMIT"

// operations maps each operation to its trigger's event. A claim is the update that raises a request's epoch.
//
//nolint:gochecknoglobals // Go has no constant maps
var operations = map[string]string{
	opInsert: "AFTER INSERT ON phoneproof_requests %s",
	opUpdate: "AFTER UPDATE ON phoneproof_requests %s WHEN (NEW.epoch = OLD.epoch)",
	opClaim:  "AFTER UPDATE ON phoneproof_requests %s WHEN (NEW.epoch > OLD.epoch)",
}

// triggers make commits of a database fail: deferred constraint triggers raise at COMMIT, when every statement has succeeded. Each
// transaction is decided once, however many rows it has, and a failed one leaves nothing behind but the count of decided ones.
type triggers struct{ server *pgserver.Server }

// installTriggers creates the triggers, which do nothing yet. The table of requests must exist.
func installTriggers(ctx context.Context, server *pgserver.Server) (*triggers, error) {
	statements := []string{
		`CREATE TABLE chaos_commits (state text NOT NULL, every bigint NOT NULL)`,
		// A sequence keeps its count when the transaction fails.
		`CREATE FUNCTION chaos_commit() RETURNS trigger LANGUAGE plpgsql AS $$
			DECLARE
				mine text := pg_current_xact_id()::text;
				wanted chaos_commits;
			BEGIN
				IF current_setting('chaos.decided', true) = mine THEN RETURN NULL; END IF;
				PERFORM set_config('chaos.decided', mine, true);
				SELECT state, every INTO wanted FROM chaos_commits LIMIT 1;
				IF NOT FOUND OR nextval('chaos_seen_' || TG_ARGV[0]) % wanted.every <> 0 THEN RETURN NULL; END IF;
				RAISE EXCEPTION '` + refusal + `' USING ERRCODE = wanted.state;
			END $$`,
	}
	for operation, rows := range operations {
		trigger := fmt.Sprintf(rows, "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW")
		statements = append(statements, "CREATE SEQUENCE chaos_seen_"+operation,
			fmt.Sprintf("CREATE CONSTRAINT TRIGGER chaos_commit_%s %s EXECUTE FUNCTION chaos_commit('%s')", operation, trigger, operation))
	}
	t := &triggers{server: server}
	for _, statement := range statements {
		if err := t.exec(ctx, statement); err != nil {
			return nil, fmt.Errorf("install triggers: %w", err)
		}
	}
	return t, nil
}

// failCommits makes one in every transactions of each operation fail with that SQLSTATE, from the next commit on.
func (t *triggers) failCommits(ctx context.Context, state string, every int) error {
	if err := t.exec(ctx, fmt.Sprintf(`INSERT INTO chaos_commits (state, every) VALUES ('%s', %d)`, state, every)); err != nil {
		return fmt.Errorf("make commits fail: %w", err)
	}
	return nil
}

// stopFailing lets every commit succeed again.
func (t *triggers) stopFailing(ctx context.Context) error {
	if err := t.exec(ctx, `DELETE FROM chaos_commits`); err != nil {
		return fmt.Errorf("let commits succeed: %w", err)
	}
	return nil
}

func (t *triggers) exec(ctx context.Context, statement string) error {
	return t.server.Exec(ctx, "postgres", statement)
}
