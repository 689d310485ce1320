package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/phoneproof/phoneproof/test/pgserver"
)

// The kinds of requests that can be stored in bulk.
const (
	finished = "finished" // verified and delivered, with a long retention
	due      = "due"      // verified, with an event that is due
)

// insertBulk stores n requests of a project at once, with ids like those that the API creates.
const insertBulk = `INSERT INTO phoneproof_requests (project, id, phone, method, created_at, expires_at, key_name, body_hash, phase,
		verified_at, actual, delivered_at, next_attempt_at, version, work, since)
	SELECT $1, $2 || translate(lpad(i::text, 26 - length($2), '0'), '0123456789', 'abcdefghij'), '+4915112345678', 'WHATSAPP',
		now() - i * interval '1 microsecond',
		now() + interval '1 hour', 'backend', '', 'VERIFIED', now(), '+4915112345678', DELIVERED, NEXT, i, WORK,
		now() - i * interval '1 microsecond'
	FROM generate_series(1, $3) AS i`

// storeRequests stores n requests of one kind in bulk, whose ids begin with the prefix.
func storeRequests(ctx context.Context, server *pgserver.Server, project, kind, prefix string, n int) error {
	values := strings.NewReplacer("DELIVERED", "now()", "NEXT", "NULL", "WORK", "3")
	if kind == due {
		values = strings.NewReplacer("DELIVERED", "NULL", "NEXT", "now()", "WORK", "2")
	}
	return executeSQL(ctx, server, values.Replace(insertBulk), project, prefix, n)
}

// idDigits writes numbers as insertBulk does: ids have no zeros and ones.
var idDigits = strings.NewReplacer("0", "a", "1", "b", "2", "c", "3", "d", "4", "e", "5", "f", "6", "g", "7", "h", "8", "i", "9", "j")

// storedRequests returns the first n requests that were stored in bulk with a prefix.
func storedRequests(prefix string, n int) []started {
	all := make([]started, n)
	for i := range all {
		all[i].ID = prefix + idDigits.Replace(fmt.Sprintf("%0*d", 26-len(prefix), i+1))
	}
	return all
}

// executeSQL runs a statement on its own connection.
func executeSQL(ctx context.Context, server *pgserver.Server, statement string, args ...any) error {
	conn, err := pgx.Connect(ctx, server.URI("postgres"))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement, args...)
	return errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
}

// queryCount returns the result of a query that counts.
func queryCount(ctx context.Context, server *pgserver.Server, query string, args ...any) (int, error) {
	conn, err := pgx.Connect(ctx, server.URI("postgres"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // only read from
	n := 0
	return n, conn.QueryRow(ctx, query, args...).Scan(&n)
}

// vacuumRequests vacuums the table now, so that autovacuum does not hit only one side of a comparison.
func vacuumRequests(ctx context.Context, server *pgserver.Server) error {
	if err := executeSQL(ctx, server, "VACUUM ANALYZE phoneproof_requests"); err != nil {
		return fmt.Errorf("vacuum requests: %w", err)
	}
	return nil
}

// withoutCheckpoints are settings of a database without checkpoints. After one, the first write to each page logs the
// whole page, which slows the next seconds, and a large table more than a small one.
var withoutCheckpoints = map[string]string{"checkpoint_timeout": "'1h'", "max_wal_size": "'32GB'", "shared_buffers": "'1GB'"}
