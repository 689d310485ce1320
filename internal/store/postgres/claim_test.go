package postgres

import (
	"time"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

var _ = Describe("Claims beside many events that wait", func() {
	It("read them after a repair, and then only at an interval", func(ctx SpecContext) {
		uri, _ := inSchema(ctx)
		s := openStore(ctx, project, uri)
		conn, err := pgx.Connect(ctx, uri)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(conn.Close(ctx)).To(Succeed()) })
		_, err = conn.Exec(ctx, manyStored, project, 10_000)
		Expect(err).NotTo(HaveOccurred())
		_, err = conn.Exec(ctx, "UPDATE phoneproof_requests SET work = 2, since = now() + interval '1 hour', last_attempt_at = now()")
		Expect(err).NotTo(HaveOccurred())
		_, err = conn.Exec(ctx, "VACUUM ANALYZE phoneproof_requests", pgx.QueryExecModeSimpleProtocol)
		Expect(err).NotTo(HaveOccurred())

		read := func(repaired time.Time) int {
			GinkgoHelper()
			return blocksRead(ctx, conn, sqlDue, s.dueArguments(verification.Policy{Events: verification.EventsOn, Repaired: repaired}, 100))
		}
		const few = 60
		repaired := time.Now().Add(-time.Hour)
		Expect(read(time.Time{})).To(BeNumerically("<", few), "never repaired")
		Expect(read(repaired)).To(BeNumerically(">", few))
		Expect(read(repaired)).To(BeNumerically("<", few))
	})
})
