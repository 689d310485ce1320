package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/phoneproof/phoneproof/test/pgserver"
)

// What can be stored in bulk, without what nobody would wait for.
const (
	finished = "finished" // verified and delivered, to be kept for long
	due      = "due"      // verified, with an event that is due
)

// bulk stores n requests of a project at once, with ids like those that the API gives.
const bulk = `INSERT INTO phoneproof_requests (project, id, phone, method, created_at, expires_at, key_name, body_hash, phase,
		verified_at, actual, delivered_at, next_attempt_at, version, work, since)
	SELECT $1, $2 || translate(lpad(i::text, 26 - length($2), '0'), '0123456789', 'abcdefghij'), '+4915112345678', 'WHATSAPP',
		now(), now() + interval '1 hour', 'backend', '', 'VERIFIED', now(), '+4915112345678', DELIVERED, NEXT, i, WORK,
		now() - i * interval '1 microsecond'
	FROM generate_series(1, $3) AS i`

// store stores so many requests of one kind in bulk; the prefix of their ids tells them from others.
func store(ctx context.Context, server *pgserver.Server, project, kind, prefix string, n int) error {
	values := strings.NewReplacer("DELIVERED", "now()", "NEXT", "NULL", "WORK", "3")
	if kind == due {
		values = strings.NewReplacer("DELIVERED", "NULL", "NEXT", "now()", "WORK", "2")
	}
	return execute(ctx, server, values.Replace(bulk), project, prefix, n)
}

// digits are how bulk writes numbers into ids: those have no zeros and ones.
var digits = strings.NewReplacer("0", "a", "1", "b", "2", "c", "3", "d", "4", "e", "5", "f", "6", "g", "7", "h", "8", "i", "9", "j")

// stored are the first n requests that were stored in bulk with a prefix.
func stored(prefix string, n int) []begun {
	all := make([]begun, n)
	for i := range all {
		all[i].ID = prefix + digits.Replace(fmt.Sprintf("%0*d", 26-len(prefix), i+1))
	}
	return all
}

// execute runs a statement on a connection of its own.
func execute(ctx context.Context, server *pgserver.Server, statement string, args ...any) error {
	conn, err := pgx.Connect(ctx, server.URI("postgres"))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement, args...)
	return errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
}

// count is the answer of a query that counts.
func count(ctx context.Context, server *pgserver.Server, query string, args ...any) (int, error) {
	conn, err := pgx.Connect(ctx, server.URI("postgres"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // the answer is there
	n := 0
	return n, conn.QueryRow(ctx, query, args...).Scan(&n)
}

// settle has the database do now what it would do at some time: otherwise one side of a comparison might meet it.
func settle(ctx context.Context, server *pgserver.Server) error {
	if err := execute(ctx, server, "VACUUM ANALYZE phoneproof_requests"); err != nil {
		return fmt.Errorf("settle the database: %w", err)
	}
	return nil
}

// withoutCheckpoints are settings of a database that never meets one: after it, each page that is touched is written as a
// whole, once, which falls on the first seconds of five minutes, and on many pages more than on few.
var withoutCheckpoints = map[string]string{"checkpoint_timeout": "'1h'", "max_wal_size": "'32GB'", "shared_buffers": "'1GB'"}

// cost is the processor time of a replica and of its database.
type cost struct{ replica, database time.Duration }

func (x *site) cost() (cost, error) {
	replica, err := x.replica.CPU()
	if err != nil {
		return cost{}, err
	}
	database, err := x.system.Database.CPU()
	return cost{replica, database}, err
}

// since is what was used since an earlier time, for each of n, in microseconds.
func (c cost) since(before cost, n int64) (replica, database float64) {
	each := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(max(n, 1)) }
	return each(c.replica - before.replica), each(c.database - before.database)
}
