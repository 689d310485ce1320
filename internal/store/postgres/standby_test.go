package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/test/pgserver"
)

var _ = Describe("A database with a synchronous standby", func() {
	It("is shown to have nothing that the standby lacks, and is left for a new primary", func(ctx SpecContext) {
		pair, err := pgserver.StartPair(ctx, true, pgserver.Options{Output: GinkgoWriter})
		if errors.Is(err, pgserver.ErrNotInstalled) {
			Skip(err.Error())
		}
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(pair.Stop)
		s := openStore(ctx, project, pair.URI("postgres"))
		create := func(i int) (verification.Created, error) {
			n := creationOf(i)
			n.Fresh = false // the client may have tried before
			return s.Create(ctx, n, verification.Limits{})
		}
		_, err = create(0)
		Expect(err).NotTo(HaveOccurred())
		Expect(waitForRefusal(ctx, withSetting(pair.URI("postgres"), "synchronous_commit", "local")).Message).To(ContainSubstring("=local"))

		thaw, err := pair.FreezeStandby()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(thaw)
		began := time.Now()
		_, err = create(1)
		Expect(err).To(MatchError(errUnavailable))
		Expect(time.Since(began)).To(BeNumerically("<", 3*batchTimeout))
		_, err = create(1)
		Expect(err).To(MatchError(errUnavailable), "a retry")
		Eventually(s.Problem).WithContext(ctx).WithTimeout(time.Minute).Should(MatchError(errCommitsWait))
		waiting := scalarAt[int](ctx, pair.Primary(), "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
		Expect(waiting).To(BeNumerically(">", 0), "the commit of which the client has gone")
		for range 100 {
			_, err = create(1)
			Expect(err).To(MatchError(errUnavailable), "another retry")
			_, err = s.Claim(ctx, verification.Policy{}, 1, time.Minute)
			Expect(err).To(MatchError(errUnavailable))
		}
		Expect(scalarAt[int](ctx, pair.Primary(), "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")).
			To(Equal(waiting), "no more connections wait")
		_, err = s.Read(ctx, creationOf(1).ID)
		Expect(err).To(MatchError(verification.ErrNotFound))
		_, err = s.Read(ctx, creationOf(0).ID)
		Expect(err).NotTo(HaveOccurred(), "reads go on")

		Expect(thaw()).To(Succeed())
		var retried verification.Created
		Eventually(func() error {
			retried, err = create(1)
			return err
		}).WithContext(ctx).WithTimeout(time.Minute).Should(Succeed())
		Expect(retried.Existing).To(BeTrue(), "it is stored once")

		_, err = s.Update(ctx, creationOf(0).ID, func(r *verification.Request, now time.Time) error {
			return r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, verification.NewEventKinds(verification.EventSuccess))
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(pair.Isolate())
		stale := openStore(ctx, project, pair.Primary().URI("postgres"))
		claim := func() ([]verification.Request, error) {
			return s.Claim(ctx, verification.Policy{Retention: time.Hour, Events: verification.EventsOn}, 1, time.Minute)
		}
		claimed := make(chan error, 1)
		go func() {
			_, err := claim()
			claimed <- err
		}()
		Eventually(claimed).WithContext(ctx).WithTimeout(time.Minute).Should(Receive(MatchError(errUnavailable)), "its commit waits in the server")

		By("promoting the standby while the former primary still takes writes")
		former := pair.Primary()
		Expect(pair.Promote(ctx)).To(Succeed())
		Eventually(func() error {
			_, err := create(2)
			return err
		}).WithContext(ctx).WithTimeout(time.Minute).Should(Succeed())
		Expect(scalarAt[int](ctx, pair.Primary(), "SELECT count(*) FROM phoneproof_requests")).To(Equal(3))
		Expect(claim()).To(HaveLen(1), "the former primary claimed it for itself alone")

		_, err = stale.Update(ctx, creationOf(2).ID, func(*verification.Request, time.Time) error { return nil })
		Expect(err).To(MatchError(errUnavailable), "the former primary does not know what is there")

		By("making a primary read-only while it is used")
		Expect(former.Exec(ctx, "postgres", "ALTER SYSTEM SET synchronous_standby_names = ''")).To(Succeed())
		Expect(former.Exec(ctx, "postgres", "SELECT pg_reload_conf()")).To(Succeed())
		Eventually(s.Problem).WithContext(ctx).WithTimeout(time.Minute).Should(Succeed())
		Expect(pair.Primary().Exec(ctx, "postgres", "ALTER SYSTEM SET default_transaction_read_only = on")).To(Succeed())
		Expect(pair.Primary().Exec(ctx, "postgres", "SELECT pg_reload_conf()")).To(Succeed())
		Eventually(func() (string, error) {
			conn, err := pgx.Connect(ctx, pair.Primary().URI("postgres"))
			if err != nil {
				return "", err
			}
			defer func() { _ = conn.Close(ctx) }()
			var readOnly string
			return readOnly, conn.QueryRow(ctx, "SHOW default_transaction_read_only").Scan(&readOnly)
		}).WithContext(ctx).WithTimeout(time.Minute).Should(Equal("on"))
		_, err = create(3)
		Expect(err).NotTo(HaveOccurred())
		Expect(scalarAt[int](ctx, former, "SELECT count(*) FROM phoneproof_requests WHERE id = '"+creationOf(3).ID+"'")).To(Equal(1))
	})
})

// No cancel request ends it.
var _ = Describe("A change that waits for a lock until it is given up", func() {
	It("does not stay in the server", func(ctx SpecContext) {
		uri, schema := inSchema(ctx)
		s := openStore(ctx, project, uri)
		n := creationOf(0)
		_, err := s.Create(ctx, n, verification.Limits{})
		Expect(err).NotTo(HaveOccurred())
		other := connectAsOwner(ctx)
		defer func() { _ = other.Close(context.WithoutCancel(ctx)) }()
		_, err = other.Exec(ctx, "BEGIN; SELECT FROM "+schema+".phoneproof_requests FOR UPDATE")
		Expect(err).NotTo(HaveOccurred())
		blocked := func() int {
			return queryScalar[int](ctx, fmt.Sprintf("SELECT count(*) FROM pg_stat_activity WHERE %d = ANY (pg_blocking_pids(pid))", other.PgConn().PID()))
		}
		ended := make(chan error, 1)
		go func() {
			_, err := s.Update(ctx, n.ID, func(r *verification.Request, now time.Time) error {
				return r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, 0)
			})
			ended <- err
		}()
		Eventually(blocked).WithContext(ctx).WithTimeout(time.Minute).Should(Equal(1))
		Eventually(ended).WithContext(ctx).WithTimeout(time.Minute).Should(Receive(MatchError(errUnavailable)))
		Eventually(blocked).WithContext(ctx).WithTimeout(time.Minute).Should(BeZero())
	})
})

// Its machine is frozen or cut off, so nothing closes its connection.
var _ = Describe("A replica that vanishes in a transaction", func() {
	It("keeps no rows from the others", func(ctx SpecContext) {
		uri, schema := inSchema(ctx)
		vanished, s := openStore(ctx, project, uri), openStore(ctx, project, uri)
		n := creationOf(0)
		_, err := s.Create(ctx, n, verification.Limits{})
		Expect(err).NotTo(HaveOccurred())
		conn, err := vanished.pool.Load().Acquire(ctx)
		Expect(err).NotTo(HaveOccurred())
		defer conn.Release()
		_, err = conn.Exec(ctx, "BEGIN; SELECT FROM "+schema+".phoneproof_requests FOR UPDATE")
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() error {
			_, err := s.Update(ctx, n.ID, func(r *verification.Request, now time.Time) error {
				return r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, 0)
			})
			return err
		}).WithContext(ctx).WithTimeout(time.Minute).Should(Succeed())
	})
})

// scalarAt returns the only value of a query at a server.
func scalarAt[T any](ctx context.Context, at *pgserver.Server, query string) (value T) {
	GinkgoHelper()
	conn, err := pgx.Connect(ctx, at.URI("postgres"))
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	Expect(conn.QueryRow(ctx, query).Scan(&value)).To(Succeed())
	return value
}
