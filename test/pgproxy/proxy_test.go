package pgproxy_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/pgproxy"
	"github.com/phoneproof/phoneproof/test/pgserver"
)

const patience = time.Minute

// fixture is a proxy of a real server. Its table takes ids from a sequence, which counts the inserts that ran, committed or not.
type fixture struct {
	Gomega

	proxy  *pgproxy.Proxy
	direct *pgx.Conn
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{Gomega: NewWithT(t)}
	server, err := pgserver.Start(t.Context(), pgserver.Options{})
	if errors.Is(err, pgserver.ErrNotInstalled) {
		t.Skip(err)
	}
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(server.Stop()).To(Succeed()) })
	w.proxy, err = pgproxy.Listen(t.Context(), fmt.Sprintf("127.0.0.1:%d", server.Port), func(statement string) string {
		if strings.HasPrefix(statement, "INSERT") {
			return "insert"
		}
		return ""
	}, func(address string) string { return "client at " + address })
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(w.proxy.Close()).To(Succeed()) })
	w.direct, err = pgx.Connect(t.Context(), server.URI("postgres"))
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = w.direct.Close(context.WithoutCancel(t.Context())) })
	_, err = w.direct.Exec(t.Context(), "CREATE TABLE numbers (id bigserial, n bigint NOT NULL)")
	w.Expect(err).NotTo(HaveOccurred())
	return w
}

func (w *fixture) connect(t *testing.T) *pgx.Conn {
	t.Helper()
	// sslmode=prefer requests encryption first, which the proxy declines.
	c, err := pgx.Connect(t.Context(), fmt.Sprintf("postgresql://postgres@%s/postgres?sslmode=prefer", w.proxy.Address))
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
	return c
}

// countRows returns how many rows are stored, and how many inserts the server ran.
func (w *fixture) countRows(t *testing.T) (stored, ran int) {
	t.Helper()
	row := w.direct.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM numbers), CASE WHEN is_called THEN last_value ELSE 0 END FROM numbers_id_seq")
	w.Expect(row.Scan(&stored, &ran)).To(Succeed())
	return stored, ran
}

// inserts are the ways in which a client may send a transaction that inserts a row.
var inserts = map[string]func(ctx context.Context, c *pgx.Conn) error{ //nolint:gochecknoglobals // a table
	"a pipeline with BEGIN and COMMIT": func(ctx context.Context, c *pgx.Conn) error {
		batch := &pgx.Batch{}
		batch.Queue("BEGIN")
		batch.Queue("INSERT INTO numbers (n) VALUES ($1)", 7)
		batch.Queue("SELECT count(*) FROM numbers")
		batch.Queue("COMMIT")
		return c.SendBatch(ctx, batch).Close()
	},
	"a pipeline whose Sync commits": func(ctx context.Context, c *pgx.Conn) error {
		batch := &pgx.Batch{}
		batch.Queue("INSERT INTO numbers (n) VALUES ($1)", 7)
		return c.SendBatch(ctx, batch).Close()
	},
	"statement after statement": func(ctx context.Context, c *pgx.Conn) error {
		for _, statement := range []string{"BEGIN", "INSERT INTO numbers (n) VALUES (7)", "COMMIT"} {
			if _, err := c.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	},
	"a statement with an argument": func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "INSERT INTO numbers (n) VALUES ($1)", 7)
		return err
	},
}

func TestProxy_cutsAfterTheStatementsAndBeforeTheCommit(t *testing.T) {
	w := newFixture(t)
	for name, insert := range inserts {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			stored, ran := w.countRows(t)
			cut := w.proxy.Cut().Of("insert")
			c := w.connect(t)
			g.Expect(insert(t.Context(), c)).To(Succeed(), "no cut without an order")
			w.proxy.CutCommits(2)
			g.Expect(insert(t.Context(), c)).To(Succeed(), "the first of two")
			g.Expect(insert(t.Context(), c)).NotTo(Succeed(), "the second")
			g.Expect(c.IsClosed()).To(BeTrue())
			w.proxy.CutCommits(0)
			g.Expect(insert(t.Context(), w.connect(t))).To(Succeed())

			after, runs := w.countRows(t)
			g.Expect(after-stored).To(Equal(3), "the cut transaction is not committed")
			g.Expect(runs-ran).To(Equal(4), "and its insert was run")
			g.Expect(w.proxy.Cut().Of("insert") - cut).To(Equal(1))
		})
	}
}

func TestProxy_losesTheAnswersOfCommits(t *testing.T) {
	w := newFixture(t)
	for name, insert := range inserts {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			stored, _ := w.countRows(t)
			lost := w.proxy.Lost().Of("insert")
			w.proxy.LoseAnswers(2)
			for range 2 {
				c := w.connect(t)
				g.Expect(insert(t.Context(), c)).NotTo(Succeed())
				g.Expect(c.IsClosed()).To(BeTrue())
			}
			c := w.connect(t)
			g.Expect(insert(t.Context(), c)).To(Succeed(), "the third")
			w.proxy.LoseAnswers(0)
			g.Expect(insert(t.Context(), c)).To(Succeed())
			after, _ := w.countRows(t)
			g.Expect(after-stored).To(Equal(4), "a transaction without an answer is committed all the same")
			g.Expect(w.proxy.Lost().Of("insert") - lost).To(Equal(2))
			for hit := range w.proxy.Lost() {
				g.Expect(hit.Client).To(HavePrefix("client at 127.0.0.1:"))
			}
		})
	}
}

func TestProxy_countsWhatTheServerRefusesToCommit(t *testing.T) {
	w := newFixture(t)
	for _, statement := range []string{
		`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$`,
		`CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON numbers DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
			WHEN (NEW.n = 7) EXECUTE FUNCTION refuse()`,
	} {
		_, err := w.direct.Exec(t.Context(), statement)
		w.Expect(err).NotTo(HaveOccurred())
	}
	w.Expect(inserts["a statement with an argument"](t.Context(), w.connect(t))).NotTo(Succeed())
	w.Expect(w.proxy.Refused()).To(BeEmpty(), "nothing is counted without an order")
	w.proxy.NoteRefusals("no")
	refused := 0
	for name, insert := range inserts {
		w.proxy.LoseAnswers(1)
		w.Expect(insert(t.Context(), w.connect(t))).To(MatchError(ContainSubstring("SQLSTATE P0001")), "%s: there is no commit whose answer to lose", name)
		refused++
		w.Expect(w.proxy.Refused().Of("insert")).To(Equal(refused), name)
	}
	w.Expect(w.proxy.Lost()).To(BeEmpty())
	w.proxy.LoseAnswers(0)

	c := w.connect(t)
	_, err := c.Exec(t.Context(), "INSERT INTO numbers (n) VALUES ($1)", nil)
	w.Expect(err).To(MatchError(ContainSubstring("SQLSTATE 23502")))
	batch := &pgx.Batch{}
	batch.Queue("BEGIN")
	batch.Queue("INSERT INTO numbers (n) VALUES ($1)", nil)
	batch.Queue("COMMIT")
	w.Expect(c.SendBatch(t.Context(), batch).Close()).To(MatchError(ContainSubstring("SQLSTATE 23502")))
	w.Expect(w.proxy.Refused().Of("insert")).To(Equal(refused), "a failed statement is not a failed commit")

	w.proxy.NoteRefusals("another reason")
	w.Expect(inserts["a statement with an argument"](t.Context(), w.connect(t))).NotTo(Succeed())
	w.proxy.NoteRefusals("")
	w.Expect(w.proxy.Refused().Of("insert")).To(Equal(refused), "another reason")
}

// TestProxy_withdraws withdraws an order while a commit that it chose is in flight: the call returns only after that commit.
func TestProxy_withdraws(t *testing.T) {
	w := newFixture(t)
	for _, statement := range []string{
		"CREATE TABLE gate ()",
		`CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN LOCK TABLE gate IN SHARE MODE; RETURN NULL; END $$`,
		`CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON numbers DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait()`,
	} {
		_, err := w.direct.Exec(t.Context(), statement)
		w.Expect(err).NotTo(HaveOccurred())
	}
	for name, insert := range inserts {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			stored, _ := w.countRows(t)
			lost := w.proxy.Lost().Of("insert")
			gate, err := w.direct.Begin(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			_, err = gate.Exec(t.Context(), "LOCK TABLE gate IN EXCLUSIVE MODE")
			g.Expect(err).NotTo(HaveOccurred())
			w.proxy.LoseAnswers(1)
			c, ended := w.connect(t), make(chan error, 1)
			go func() { ended <- insert(t.Context(), c) }() // ends when the gate opens
			g.Eventually(func() (n int, err error) {
				err = gate.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE NOT granted").Scan(&n)
				return n, err
			}).WithTimeout(patience).Should(Equal(1), "the commit waits")

			withdrawn := make(chan int, 1)
			go func() { // ends with the commit
				w.proxy.LoseAnswers(0)
				withdrawn <- w.proxy.Lost().Of("insert") - lost
			}()
			g.Consistently(withdrawn).WithTimeout(200 * time.Millisecond).ShouldNot(Receive())
			g.Expect(gate.Commit(t.Context())).To(Succeed())
			g.Eventually(withdrawn).WithTimeout(patience).Should(Receive(Equal(1)))
			g.Eventually(ended).WithTimeout(patience).Should(Receive(HaveOccurred()))
			after, _ := w.countRows(t)
			g.Expect(after - stored).To(Equal(1))
		})
	}
}

// TestProxy_losesTheAnswerOfAnotherCommit ends a connection whose answer was to be lost: another one loses its answer instead.
func TestProxy_losesTheAnswerOfAnotherCommit(t *testing.T) {
	w := newFixture(t)
	_, err := w.direct.Exec(t.Context(), `CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(600); RETURN NULL; END $$`)
	w.Expect(err).NotTo(HaveOccurred())
	_, err = w.direct.Exec(t.Context(), `CREATE CONSTRAINT TRIGGER die AFTER INSERT ON numbers DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW WHEN (NEW.n = 8) EXECUTE FUNCTION die()`)
	w.Expect(err).NotTo(HaveOccurred())
	w.proxy.LoseAnswers(1)
	_, err = w.connect(t).Exec(t.Context(), "INSERT INTO numbers (n) VALUES ($1)", 8)
	w.Expect(err).To(HaveOccurred())
	w.Expect(w.proxy.Lost()).To(BeEmpty())
	w.Eventually(func() (int, error) {
		c, err := pgx.Connect(t.Context(), fmt.Sprintf("postgresql://postgres@%s/postgres", w.proxy.Address))
		if err != nil {
			return 0, err
		}
		_, _ = c.Exec(t.Context(), "INSERT INTO numbers (n) VALUES ($1)", 7) // it may be the one that is cut
		return w.proxy.Lost().Of("insert"), c.Close(t.Context())
	}).WithTimeout(patience).Should(Equal(1))
}

func TestProxy_leavesOtherTransactionsAlone(t *testing.T) {
	w := newFixture(t)
	w.proxy.CutCommits(1)
	c := w.connect(t)
	batch := &pgx.Batch{}
	for _, statement := range []string{"BEGIN", "UPDATE numbers SET n = 1", "COMMIT"} {
		batch.Queue(statement)
	}
	w.Expect(c.SendBatch(t.Context(), batch).Close()).To(Succeed(), "no statement with an operation")

	batch = &pgx.Batch{}
	for _, statement := range []string{"BEGIN", "INSERT INTO numbers (n) VALUES (1)", "ROLLBACK"} {
		batch.Queue(statement)
	}
	w.Expect(c.SendBatch(t.Context(), batch).Close()).To(Succeed(), "no commit")

	_, err := c.Exec(t.Context(), "INSERT INTO numbers (n) VALUES ($1)", nil)
	w.Expect(err).To(MatchError(ContainSubstring("SQLSTATE 23502")), "the server's own error is forwarded")
	w.Expect(c.IsClosed()).To(BeFalse())
	w.Expect(w.proxy.Cut()).To(BeEmpty())
}

func TestProxy_passesOnTheRequestToCancel(t *testing.T) {
	w := newFixture(t)
	c := w.connect(t)
	failed := make(chan error, 1)
	go func() { // ends with the query
		_, err := c.Exec(t.Context(), "SELECT pg_sleep(600)")
		failed <- err
	}()
	w.Eventually(func() (n int, err error) {
		err = w.direct.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'").Scan(&n)
		return n, err
	}).WithTimeout(patience).Should(Equal(1))
	w.Expect(c.PgConn().CancelRequest(t.Context())).To(Succeed())
	w.Eventually(failed).WithTimeout(patience).Should(Receive(MatchError(ContainSubstring("SQLSTATE 57014"))))
}
