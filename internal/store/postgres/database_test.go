package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing/fstest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

const project = "test/project"

// inSchema returns a URI of the server with a new schema.
func inSchema(ctx context.Context) (uri, schema string) {
	schema = newSchema(ctx)
	return withSetting(server.URI("postgres"), "search_path", schema), schema
}

func creationOf(i int) verification.New {
	GinkgoHelper()
	number, err := phone.FromE164(fmt.Sprintf("+49151%08d", i))
	Expect(err).NotTo(HaveOccurred())
	return verification.New{ID: fmt.Sprintf("vr%024d", i), Phone: number, Method: verification.WhatsApp, TTL: time.Hour, KeyName: "backend"}
}

// queryScalar reads one value as the owner of the server.
func queryScalar[T any](ctx context.Context, statement string) T {
	GinkgoHelper()
	conn := connectAsOwner(ctx)
	defer func() { _ = conn.Close(ctx) }()
	var value T
	Expect(conn.QueryRow(ctx, statement).Scan(&value)).To(Succeed())
	return value
}

// waitForProblem waits until a store reports a problem of its database, and returns it.
func waitForProblem(ctx context.Context, s *Store) *DatabaseError {
	GinkgoHelper()
	var problem *DatabaseError
	Eventually(func() bool {
		return errors.As(s.Problem(), &problem) && !strings.Contains(problem.Message, "not reached yet")
	}).WithContext(ctx).WithTimeout(time.Minute).Should(BeTrue())
	return problem
}

// waitForRefusal starts a store that cannot use its database, and returns the problem that it reports.
func waitForRefusal(ctx context.Context, uri string) *DatabaseError {
	GinkgoHelper()
	s := startStore(ctx, project, uri)
	problem := waitForProblem(ctx, s)
	_, err := s.Read(ctx, "vr")
	Expect(err).To(MatchError(&verification.Error{Code: verification.CodeStoreUnavailable}))
	return problem
}

var _ = Describe("The database", func() {
	It("is rejected if it acknowledges commits that it may lose", func(ctx SpecContext) {
		problem := waitForRefusal(ctx, withSetting(server.URI("postgres"), "synchronous_commit", "off"))
		Expect(problem.Rejected).To(BeTrue())
		Expect(problem.Message).To(ContainSubstring("synchronous_commit=off"))
	})

	It("is rejected if it is read-only", func(ctx SpecContext) {
		uri, _ := inSchema(ctx)
		openStore(ctx, project, uri) // creates the tables, so that nothing is left to write
		problem := waitForRefusal(ctx, withSetting(uri, "default_transaction_read_only", "on"))
		Expect(problem.Message).To(ContainSubstring("read-only"))
	})

	It("is reported with the reason and without the address when it is not usable", func(ctx SpecContext) {
		problem := waitForRefusal(ctx, server.URI("nowhere"))
		Expect(problem.Rejected).To(BeTrue())
		Expect(problem.Message).To(Equal(`the database refuses: database "nowhere" does not exist (SQLSTATE 3D000)`))
		problem = waitForRefusal(ctx, "postgresql://user:canary@127.0.0.1:1/postgres")
		Expect(problem.Rejected).To(BeFalse())
		Expect(problem.Message).To(Equal("the database refuses connections"))
		problem = waitForRefusal(ctx, "postgresql://user:canary@127.0.0.1:port/postgres")
		Expect(problem.Message).To(Equal("the connection URI cannot be read"))
		problem = waitForRefusal(ctx, strings.Replace(server.URI("postgres"), "sslmode=disable", "sslmode=require", 1))
		Expect(problem.Message).To(HavePrefix("the database does not offer TLS"))
	})

	It("is migrated once by concurrent replicas, and shares the tables with a newer version", func(ctx SpecContext) {
		uri, schema := inSchema(ctx)
		var stores []*Store
		for range 5 {
			stores = append(stores, startStore(ctx, project, uri))
		}
		for i, s := range stores {
			Eventually(s.Ready).WithContext(ctx).WithArguments(ctx).WithTimeout(time.Minute).Should(Succeed())
			_, err := s.Create(ctx, creationOf(i), verification.Limits{})
			Expect(err).NotTo(HaveOccurred())
		}
		newer := fstest.MapFS{"migrations/00099_later.sql": {Data: []byte(
			"-- +goose NO TRANSACTION\n-- +goose Up\n" +
				"ALTER TABLE phoneproof_requests ADD COLUMN IF NOT EXISTS later text NOT NULL DEFAULT 'unknown';\n" +
				"SELECT pg_sleep(0.2);")}} // so long that the others would begin, too
		files, err := fs.Glob(migrations, "migrations/*.sql")
		Expect(err).NotTo(HaveOccurred())
		for _, name := range files {
			content, err := fs.ReadFile(migrations, name)
			Expect(err).NotTo(HaveOccurred())
			newer[name] = &fstest.MapFile{Data: content}
		}
		var all sync.WaitGroup
		for _, s := range stores {
			all.Go(func() {
				defer GinkgoRecover()
				Expect(migrate(ctx, s.pool.Load(), newer)).To(Succeed())
			})
		}
		all.Wait()
		versions := queryScalar[int](ctx, fmt.Sprintf("SELECT count(*) - count(DISTINCT version_id) FROM %s.%s", schema, migrationsTable))
		Expect(versions).To(BeZero(), "migrations that ran twice")
		stored := "SELECT count(*) FROM " + schema + ".phoneproof_requests WHERE later = 'unknown'"
		Expect(queryScalar[int](ctx, stored)).To(Equal(len(stores)))
		_, err = stores[1].Update(ctx, creationOf(1).ID, func(r *verification.Request, now time.Time) error {
			return r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, 0)
		})
		Expect(err).NotTo(HaveOccurred(), "a replica of the version before goes on")
		old := openStore(ctx, project, uri)
		_, err = old.Create(ctx, creationOf(9), verification.Limits{})
		Expect(err).NotTo(HaveOccurred())
		Expect(old.Read(ctx, creationOf(9).ID)).To(HaveField("Phase", verification.Pending))
	})

	It("is not ready with the tables of an unreleased version, whose migrations count as done", func(ctx SpecContext) {
		uri, schema := inSchema(ctx)
		openStore(ctx, project, uri)
		execStatements(ctx, "ALTER TABLE "+schema+".phoneproof_requests DROP COLUMN test")
		s := startStore(ctx, project, uri)
		s.AwaitAttempt(ctx)
		Expect(s.Ready(ctx)).To(MatchError(ContainSubstring(`column "test" does not exist`)))
	})

	It("commits concurrent operations together, and one bad row fails alone", func(ctx SpecContext) {
		uri, schema := inSchema(ctx)
		s := openStore(ctx, project, uri)
		const calls, bad = 200, 77
		commits := func() int64 {
			return queryScalar[int64](ctx, "SELECT sum(n) FROM (SELECT count(DISTINCT created_at) AS n FROM "+schema+".phoneproof_requests) AS t")
		}
		errs := make([]error, calls)
		var all sync.WaitGroup
		for i := range calls {
			all.Go(func() {
				n := creationOf(i)
				if i == bad {
					n.KeyName = "nul\x00byte"
				}
				_, errs[i] = s.Create(ctx, n, verification.Limits{})
			})
		}
		all.Wait()
		for i, err := range errs {
			if i == bad {
				Expect(err).To(MatchError(verification.ErrContent))
				Expect(err.Error()).NotTo(ContainSubstring("nul"))
				continue
			}
			Expect(err).NotTo(HaveOccurred())
			Expect(s.Read(ctx, creationOf(i).ID)).To(HaveField("ID", creationOf(i).ID))
		}
		Expect(commits()).To(BeNumerically("<", calls/2), "a batch has one timestamp")
	})

	It("survives serialization failures and deadlocks on every fifth transaction", func(ctx SpecContext) {
		uri, schema := inSchema(ctx)
		s := openStore(ctx, project, uri)
		execStatements(ctx,
			"CREATE SEQUENCE "+schema+".faults",
			`CREATE FUNCTION `+schema+`.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
				IF nextval('`+schema+`.faults') % 5 = 0 THEN RAISE SQLSTATE '40001'; END IF;
				IF nextval('`+schema+`.faults') % 5 = 1 THEN RAISE SQLSTATE '40P01'; END IF;
				RETURN NEW; END $$`,
			"CREATE TRIGGER fail BEFORE INSERT OR UPDATE ON "+schema+".phoneproof_requests FOR EACH ROW EXECUTE FUNCTION "+schema+".fail()")
		for i := range 40 {
			_, err := s.Create(ctx, creationOf(i), verification.Limits{PerKey: verification.Rate{Requests: 40, Period: time.Hour}})
			Expect(err).NotTo(HaveOccurred())
			_, err = s.Update(ctx, creationOf(i).ID, func(r *verification.Request, now time.Time) error {
				return r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, verification.NewEventKinds(verification.EventSuccess))
			})
			Expect(err).NotTo(HaveOccurred())
		}
		_, err := s.Create(ctx, creationOf(40), verification.Limits{PerKey: verification.Rate{Requests: 40, Period: time.Hour}})
		Expect(err).To(MatchError(&verification.Error{Code: verification.CodeRateLimited}), "each was counted once")
		Expect(testutil.ToFloat64(s.metrics.retries)).To(BeNumerically(">=", 20))
	})

	It("acknowledges nothing whose commit fails", func(ctx SpecContext) {
		uri, schema := inSchema(ctx)
		s := openStore(ctx, project, uri)
		_, err := s.Create(ctx, creationOf(0), verification.Limits{})
		Expect(err).NotTo(HaveOccurred())
		before, err := s.Read(ctx, creationOf(0).ID)
		Expect(err).NotTo(HaveOccurred())
		execStatements(ctx, // a deferred trigger fires at the commit, after all statements have succeeded
			`CREATE FUNCTION `+schema+`.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no commit'; END $$`,
			"CREATE CONSTRAINT TRIGGER fail AFTER INSERT OR UPDATE ON "+schema+".phoneproof_requests DEFERRABLE INITIALLY DEFERRED "+
				"FOR EACH ROW EXECUTE FUNCTION "+schema+".fail()")
		_, err = s.Create(ctx, creationOf(1), verification.Limits{})
		Expect(err).To(MatchError(verification.Unavailable(nil)))
		// A binding makes the update a transaction of two statements.
		_, err = s.Update(ctx, before.ID, func(r *verification.Request, now time.Time) error {
			return r.Bind(verification.Evidence{Method: r.Method, SentAt: now}, "sender", now, 0)
		})
		Expect(err).To(MatchError(verification.Unavailable(nil)))
		execStatements(ctx, "DROP TRIGGER fail ON "+schema+".phoneproof_requests")
		Expect(s.Read(ctx, creationOf(1).ID)).Error().To(MatchError(verification.ErrNotFound))
		Expect(s.Read(ctx, before.ID)).To(Equal(before))
		Expect(s.Awaiting(ctx, "sender")).Error().To(MatchError(verification.ErrNotFound))
	})

	It("is unavailable, and blames no request, if every retry conflicts with another transaction", func(ctx SpecContext) {
		uri, schema := inSchema(ctx)
		s := openStore(ctx, project, uri)
		execStatements(ctx,
			`CREATE FUNCTION `+schema+`.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE SQLSTATE '23505'; END $$`,
			"CREATE TRIGGER fail BEFORE INSERT ON "+schema+".phoneproof_group_admissions FOR EACH ROW EXECUTE FUNCTION "+schema+".fail()")
		limits := verification.Limits{PerSubject: verification.Rate{Requests: 9, Period: time.Hour}}
		n := creationOf(1)
		n.Subject = "ada"
		_, err := s.Create(ctx, n, limits)
		Expect(err).To(MatchError(&verification.Error{Code: verification.CodeStoreUnavailable}))
		Expect(err).NotTo(MatchError(verification.ErrContent))
	})

	It("works through PgBouncer in transaction mode", func(ctx SpecContext) {
		port := newBouncer(ctx, "postgres")
		execStatements(ctx, "CREATE DATABASE bounced")
		uri := fmt.Sprintf("postgresql://postgres@127.0.0.1:%d/bounced?sslmode=disable&default_query_exec_mode=exec", port)
		var stores []*Store
		for range 3 {
			stores = append(stores, openStore(ctx, project, uri))
		}
		limits := verification.Limits{
			PerKey:         verification.Rate{Requests: 1000, Period: time.Hour},
			PerPhoneNumber: verification.Rate{Requests: 5, Period: time.Hour},
		}
		var all sync.WaitGroup
		for i := range 300 {
			all.Go(func() {
				defer GinkgoRecover()
				_, err := stores[i%3].Create(ctx, creationOf(i), limits)
				Expect(err).NotTo(HaveOccurred())
				_, err = stores[(i+1)%3].Update(ctx, creationOf(i).ID, func(r *verification.Request, now time.Time) error {
					return r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, verification.NewEventKinds(verification.EventSuccess))
				})
				Expect(err).NotTo(HaveOccurred())
			})
		}
		all.Wait()
		claimed, err := stores[0].Claim(ctx, verification.Policy{Events: verification.EventsOn}, 1000, time.Hour)
		Expect(err).NotTo(HaveOccurred())
		Expect(claimed).To(HaveLen(300))
	})

	It("recognises a creation whose answer was lost", func(ctx SpecContext) {
		uri, _ := inSchema(ctx)
		s := openStore(ctx, project, uri)
		in := creation{New: creationOf(1), version: newVersion()}
		for range 2 { // the second is a retry after a broken connection
			c := &call[creation, verification.Created]{ctx: ctx, in: in, done: make(chan struct{})}
			Expect(s.createAll(ctx, []*call[creation, verification.Created]{c})).To(Succeed())
			Expect(c.err).NotTo(HaveOccurred())
			Expect(c.out.Existing).To(BeFalse())
		}
	})

	It("keeps a lease with one holder", func(ctx SpecContext) {
		uri, _ := inSchema(ctx)
		s := openStore(ctx, project, uri)
		a, b := s.Lock("a"), s.Lock("b")
		_, _, err := a.Get(ctx)
		Expect(apierrors.IsNotFound(err)).To(BeTrue())
		Expect(a.Create(ctx, resourcelock.LeaderElectionRecord{HolderIdentity: "a"})).To(Succeed())
		Expect(b.Create(ctx, resourcelock.LeaderElectionRecord{HolderIdentity: "b"})).To(MatchError(verification.ErrConflict))
		record, _, err := b.Get(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(record.HolderIdentity).To(Equal("a"))
		Expect(b.Update(ctx, resourcelock.LeaderElectionRecord{HolderIdentity: "b"})).To(Succeed())
		Expect(a.Update(ctx, resourcelock.LeaderElectionRecord{HolderIdentity: "a"})).To(MatchError(verification.ErrConflict))
	})
})
