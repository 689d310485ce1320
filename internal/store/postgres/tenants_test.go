package postgres

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// expectDenied expects that the role of a store lacks the privilege for a statement.
func expectDenied(ctx context.Context, s *Store, statement string) {
	GinkgoHelper()
	_, err := s.pool.Load().Exec(ctx, statement)
	Expect(err).To(MatchError(ContainSubstring("SQLSTATE 42501")), statement)
}

// createVerified creates and verifies a request, and returns its id.
func createVerified(ctx context.Context, s *Store, i int) string {
	GinkgoHelper()
	created, err := s.Create(ctx, creationOf(i), verification.Limits{PerKey: verification.Rate{Requests: 10, Period: time.Hour}})
	Expect(err).NotTo(HaveOccurred())
	_, err = s.Update(ctx, created.Request.ID, func(r *verification.Request, now time.Time) error {
		return r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, verification.NewEventKinds(verification.EventSuccess))
	})
	Expect(err).NotTo(HaveOccurred())
	return created.Request.ID
}

// Two tenants of one database. The privileges of the role separate them, not the project name, which the holder of a URI can
// choose freely.
var _ = Describe("Two projects in one database", func() {
	const bank, shop = "bank/bank", "shop/shop"

	It("can neither read nor verify each other's requests with separate roles and schemas", func(ctx SpecContext) {
		first, second := newTenant(ctx), newTenant(ctx)
		uri := server.URI("postgres")
		ours, theirs := openStore(ctx, shop, withRole(first, uri)), openStore(ctx, bank, withRole(second, uri))
		id := createVerified(ctx, theirs, 1)
		createVerified(ctx, ours, 2)
		Expect(theirs.Read(ctx, id)).To(HaveField("Phase", verification.Verified))

		By("using the other project's name")
		disguised := openStore(ctx, bank, withRole(first, uri))
		_, err := disguised.Read(ctx, id)
		Expect(err).To(MatchError(verification.ErrNotFound))
		_, err = disguised.Update(ctx, id, func(*verification.Request, time.Time) error { return nil })
		Expect(err).To(MatchError(verification.ErrNotFound))

		By("accessing the other's tables")
		for _, table := range []string{
			"requests", "bindings", "keys", "key_admissions", "number_admissions", "leases", migrationsTable[len("phoneproof_"):],
		} {
			name := fmt.Sprintf("%s.phoneproof_%s", second, table)
			expectDenied(ctx, ours, "SELECT 1 FROM "+name)
			expectDenied(ctx, ours, "DELETE FROM "+name)
		}
		expectDenied(ctx, ours, "UPDATE "+second+".phoneproof_requests SET phase = 'VERIFIED'")
		expectDenied(ctx, ours, "CREATE TABLE "+second+".phoneproof_more (id text)")
		expectDenied(ctx, ours, "CREATE TABLE public.phoneproof_requests (id text)")
		expectDenied(ctx, ours, "SET ROLE "+second)
	})

	It("share everything with one role", func(ctx SpecContext) {
		role := newTenant(ctx)
		uri := withRole(role, server.URI("postgres"))
		theirs := openStore(ctx, bank, uri)
		id := createVerified(ctx, theirs, 1)
		Expect(openStore(ctx, bank, uri).Read(ctx, id)).To(HaveField("Phase", verification.Verified), "as docs/security.md warns")
	})

	It("are also separated through PgBouncer", func(ctx SpecContext) {
		first, second := newTenant(ctx), newTenant(ctx)
		behind := func(role string) string {
			return fmt.Sprintf("postgresql://%s@127.0.0.1:%d/postgres?sslmode=disable&default_query_exec_mode=exec", role, newBouncer(ctx, role))
		}
		id := createVerified(ctx, openStore(ctx, bank, behind(second)), 1)
		_, err := openStore(ctx, bank, behind(first)).Read(ctx, id)
		Expect(err).To(MatchError(verification.ErrNotFound))
		Expect(queryScalar[int](ctx, "SELECT count(*) FROM "+second+".phoneproof_requests")).To(Equal(1))

		By("naming the schema in the URI")
		problem := waitForRefusal(ctx, withSetting(behind(first), "search_path", second))
		Expect(problem.Message).To(ContainSubstring("search_path"), "PgBouncer does not forward this parameter")
	})

	It("can use a schema with another name than the role", func(ctx SpecContext) {
		role, schema := newTenant(ctx), newSchema(ctx)
		execStatements(ctx, "ALTER SCHEMA "+schema+" OWNER TO "+role, "ALTER ROLE "+role+" SET search_path = "+schema)
		createVerified(ctx, openStore(ctx, shop, withRole(role, server.URI("postgres"))), 1)
		Expect(queryScalar[int](ctx, "SELECT count(*) FROM "+schema+".phoneproof_requests")).To(Equal(1))
	})
})
