package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// countStatements is a tracer that counts the statements of a connection.
type countStatements map[string]int

func (c countStatements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (c countStatements) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	c[data.SQL]++
}

func (c countStatements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (c countStatements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	c[data.SQL]++
	return ctx
}

func (c countStatements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

var _ = Describe("Declines", func() {
	It("cost a creation nothing without a cool-down, and one statement for a batch with one", func(ctx SpecContext) {
		uri, _ := inSchema(ctx)
		_, err := openStore(ctx, project, uri).Create(ctx, creationOf(0), limitsOf(9)) // inserts the row of the key
		Expect(err).NotTo(HaveOccurred())
		config, err := pgx.ParseConfig(uri)
		Expect(err).NotTo(HaveOccurred())
		for i, cooldown := range []time.Duration{0, time.Hour} {
			seen := countStatements{}
			config.Tracer = seen
			conn, err := pgx.ConnectConfig(ctx, config)
			Expect(err).NotTo(HaveOccurred())
			limits := limitsOf(99)
			limits.DeclineCooldown = cooldown
			var calls []*call[creation, verification.Created]
			for n := range 20 {
				calls = append(calls, &call[creation, verification.Created]{
					ctx: ctx, in: creation{New: creationOf(1 + i*20 + n), limits: limits, version: newVersion()},
				})
			}
			Expect(newCreationBatch(project, calls).run(ctx, conn)).To(Succeed())
			for _, c := range calls {
				Expect(c.err).NotTo(HaveOccurred())
			}
			Expect(seen[sqlCommit]).To(Equal(1))
			Expect(seen[sqlDeclines]).To(Equal(i), fmt.Sprint(seen))
			Expect(conn.Close(ctx)).To(Succeed())
		}
	})

	It("are stored with the update that declines, or not at all", func(ctx SpecContext) {
		uri, schema := inSchema(ctx)
		s := openStore(ctx, project, uri)
		created, err := s.Create(ctx, creationOf(1), verification.Limits{})
		Expect(err).NotTo(HaveOccurred())
		decline := func(r *verification.Request, now time.Time) error {
			r.Phase, r.Hints = verification.Expired, []verification.Hint{{Kind: verification.HintDeclined, At: now}}
			return nil
		}
		after, err := created.Request.Apply(decline, created.Request.CreatedAt)
		Expect(err).NotTo(HaveOccurred())
		outdated := &call[change, bool]{ctx: ctx, in: change{
			before: state{Request: created.Request, version: parseVersion(created.Request.Version) + 1, readAt: time.Now()},
			after:  after, version: newVersion(),
		}}
		Expect(s.updateAll(ctx, []*call[change, bool]{outdated})).To(Succeed())
		Expect(outdated.out).To(BeFalse())
		Expect(queryScalar[int](ctx, "SELECT count(*) FROM "+schema+".phoneproof_declines")).To(BeZero(), "a race that was lost")

		declined, err := s.Update(ctx, creationOf(1).ID, decline)
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Update(ctx, creationOf(1).ID, func(r *verification.Request, now time.Time) error {
			r.Delivery.NextAttemptAt = now
			return nil
		})).Error().NotTo(HaveOccurred())
		Expect(queryScalar[time.Time](ctx, "SELECT at FROM "+schema+".phoneproof_declines")).To(BeTemporally("==", declined.DeclinedAt()))
		Expect(queryScalar[string](ctx, "SELECT number FROM "+schema+".phoneproof_declines")).To(Equal(lineOf(declined.Phone)))
	})
})
