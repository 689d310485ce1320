package postgres

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// refusedTo expects the database to refuse a statement to a role for want of a right.
func refusedTo(ctx context.Context, s *Store, statement string) {
	GinkgoHelper()
	_, err := s.pool.Load().Exec(ctx, statement)
	Expect(err).To(MatchError(ContainSubstring("SQLSTATE 42501")), statement)
}

// begins starts a request and verifies it, as another replica would.
func begins(ctx context.Context, s *Store, i int) string {
	GinkgoHelper()
	created, err := s.Create(ctx, creationOf(i), verification.Limits{PerKey: verification.Rate{Requests: 10, Period: time.Hour}})
	Expect(err).NotTo(HaveOccurred())
	_, err = s.Update(ctx, created.Request.ID, func(r *verification.Request, now time.Time) error {
		return r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, true)
	})
	Expect(err).NotTo(HaveOccurred())
	return created.Request.ID
}

// Two tenants of one database. What a role may reach decides, and not the name of the project: that is any text that the holder
// of a URI chooses.
var _ = Describe("Two projects in one database", func() {
	const bank, shop = "bank/bank", "shop/shop"

	It("can neither read nor verify each other's requests, each with a role and a schema", func(ctx SpecContext) {
		first, second := newTenant(ctx), newTenant(ctx)
		uri := server.URI("postgres")
		ours, theirs := open(ctx, shop, as(first, uri)), open(ctx, bank, as(second, uri))
		id := begins(ctx, theirs, 1)
		begins(ctx, ours, 2)
		Expect(theirs.Get(ctx, id)).To(HaveField("Phase", verification.Verified))

		By("serving under the other project's name")
		disguised := open(ctx, bank, as(first, uri))
		_, err := disguised.Get(ctx, id)
		Expect(err).To(MatchError(verification.ErrNotFound))
		_, err = disguised.Update(ctx, id, func(*verification.Request, time.Time) error { return nil })
		Expect(err).To(MatchError(verification.ErrNotFound))

		By("asking for the other's tables")
		for _, table := range []string{
			"requests", "bindings", "keys", "key_admissions", "number_admissions", "leases", migrationsTable[len("phoneproof_"):],
		} {
			name := fmt.Sprintf("%s.phoneproof_%s", second, table)
			refusedTo(ctx, ours, "SELECT 1 FROM "+name)
			refusedTo(ctx, ours, "DELETE FROM "+name)
		}
		refusedTo(ctx, ours, "UPDATE "+second+".phoneproof_requests SET phase = 'VERIFIED'")
		refusedTo(ctx, ours, "CREATE TABLE "+second+".phoneproof_more (id text)")
		refusedTo(ctx, ours, "CREATE TABLE public.phoneproof_requests (id text)")
		refusedTo(ctx, ours, "SET ROLE "+second)
	})

	It("hide nothing from each other with one role", func(ctx SpecContext) {
		role := newTenant(ctx)
		uri := as(role, server.URI("postgres"))
		theirs := open(ctx, bank, uri)
		id := begins(ctx, theirs, 1)
		Expect(open(ctx, bank, uri).Get(ctx, id)).To(HaveField("Phase", verification.Verified), "docs/security.md says so")
	})

	It("are separated through PgBouncer too", func(ctx SpecContext) {
		first, second := newTenant(ctx), newTenant(ctx)
		behind := func(role string) string {
			return fmt.Sprintf("postgresql://%s@127.0.0.1:%d/postgres?sslmode=disable&default_query_exec_mode=exec", role, newBouncer(ctx, role))
		}
		id := begins(ctx, open(ctx, bank, behind(second)), 1)
		_, err := open(ctx, bank, behind(first)).Get(ctx, id)
		Expect(err).To(MatchError(verification.ErrNotFound))
		Expect(scalar[int](ctx, "SELECT count(*) FROM "+second+".phoneproof_requests")).To(Equal(1))

		By("naming the schema in the URI")
		problem := refusedWith(ctx, with(behind(first), "search_path", second))
		Expect(problem.Message).To(ContainSubstring("search_path"), "PgBouncer passes no such parameter on")
	})

	It("may be kept in a schema of another name", func(ctx SpecContext) {
		role, schema := newTenant(ctx), newSchema(ctx)
		run(ctx, "ALTER SCHEMA "+schema+" OWNER TO "+role, "ALTER ROLE "+role+" SET search_path = "+schema)
		begins(ctx, open(ctx, shop, as(role, server.URI("postgres"))), 1)
		Expect(scalar[int](ctx, "SELECT count(*) FROM "+schema+".phoneproof_requests")).To(Equal(1))
	})
})
