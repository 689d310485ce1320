package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

var _ = Describe("Claims beside many events", func() {
	const few = 60
	// countReads stores many events whose next attempt is at that time, and returns a function that counts the pages that a claim reads.
	countReads := func(ctx context.Context, next string) func(verification.Policy) int {
		GinkgoHelper()
		uri, _ := inSchema(ctx)
		s := openStore(ctx, project, uri)
		conn, err := pgx.Connect(ctx, uri)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(conn.Close(ctx)).To(Succeed()) })
		_, err = conn.Exec(ctx, manyStored, project, 10_000)
		Expect(err).NotTo(HaveOccurred())
		_, err = conn.Exec(ctx, "UPDATE phoneproof_requests SET work = 2, since = "+next+", last_attempt_at = now()")
		Expect(err).NotTo(HaveOccurred())
		_, err = conn.Exec(ctx, "VACUUM ANALYZE phoneproof_requests", pgx.QueryExecModeSimpleProtocol)
		Expect(err).NotTo(HaveOccurred())
		return func(policy verification.Policy) int {
			GinkgoHelper()
			return blocksRead(ctx, conn, sqlDue, s.dueArguments(policy, 100))
		}
	}

	It("read those that wait after a repair, and then only at an interval", func(ctx SpecContext) {
		reads := countReads(ctx, "now() + interval '1 hour'")
		repaired := verification.Policy{Events: verification.EventsOn, Repaired: time.Now().Add(-time.Hour)}
		Expect(reads(verification.Policy{Events: verification.EventsOn})).To(BeNumerically("<", few), "never repaired")
		Expect(reads(repaired)).To(BeNumerically(">", few))
		Expect(reads(repaired)).To(BeNumerically("<", few))
	})

	It("read none that is due while events are paused", func(ctx SpecContext) {
		reads := countReads(ctx, "now() - interval '1 hour'")
		Expect(reads(verification.Policy{Events: verification.EventsOn})).To(BeNumerically(">", few))
		for _, test := range []verification.EventPolicy{verification.EventsOff, verification.EventsOn, verification.EventsPaused} {
			Expect(reads(verification.Policy{Events: verification.EventsPaused, TestEvents: test})).To(BeNumerically("<", few), "test events: %v", test)
		}
	})
})
