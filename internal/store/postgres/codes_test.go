package postgres

import (
	"context"
	"fmt"
	"io/fs"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// codeOf is creationOf for a request whose number gets a code.
func codeOf(i int) verification.New {
	n := creationOf(i)
	n.Terms = verification.Terms{Level: verification.LevelSession, Deliver: verification.DeliverCode}
	return n
}

// limitsOfCodes are those of a project with codes that limits nothing else but keys.
var limitsOfCodes = verification.Limits{
	PerKey: verification.Rate{Requests: 1_000_000, Period: time.Hour},
	Codes: verification.CodeLimits{
		PerDay: verification.Rate{Requests: 60, Period: 24 * time.Hour}, PerHour: verification.Rate{Requests: 10, Period: time.Hour},
	},
}

// insertFinishedCodes stores that many expired requests of the project with codes, which are kept for a day more.
func insertFinishedCodes(ctx context.Context, schema, of string, requests int) {
	GinkgoHelper()
	insertFinished(ctx, schema, of, "code", requests, time.Minute)
	execStatements(ctx, fmt.Sprintf(`UPDATE %s.phoneproof_requests SET deliver = 'CODE', created_at = expires_at - interval '10 minutes',
		since = expires_at + interval '23 hours' WHERE project = '%s' AND id LIKE 'code-%%'`, schema, of))
}

// countRows returns how many requests the database reads for a statement.
func countRows(ctx context.Context, uri, statement string, args ...any) (rows int) {
	GinkgoHelper()
	conn, err := pgx.Connect(ctx, uri) // its own, because the statistics are per connection
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(conn.Close(ctx)).To(Succeed()) }()
	tx, err := conn.Begin(ctx)
	Expect(err).NotTo(HaveOccurred())
	_, err = tx.Exec(ctx, statement, args...)
	Expect(err).NotTo(HaveOccurred())
	Expect(tx.QueryRow(ctx, `SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint FROM pg_stat_xact_user_tables
		WHERE relname = 'phoneproof_requests'`).Scan(&rows)).To(Succeed())
	Expect(tx.Rollback(ctx)).To(Succeed())
	return rows
}

var _ = Describe("Codes", func() {
	It("cost links of their project no statement, and share a batch with them", func(ctx SpecContext) {
		uri, schema := inSchema(ctx)
		_, err := openStore(ctx, project, uri).Create(ctx, creationOf(0), limitsOfCodes) // inserts the row of the key
		Expect(err).NotTo(HaveOccurred())
		config, err := pgx.ParseConfig(uri)
		Expect(err).NotTo(HaveOccurred())
		runBatch := func(news ...verification.New) ([]*call[creation, verification.Created], countStatements) {
			GinkgoHelper()
			seen := countStatements{}
			config.Tracer = seen
			conn, err := pgx.ConnectConfig(ctx, config)
			Expect(err).NotTo(HaveOccurred())
			defer func() { Expect(conn.Close(ctx)).To(Succeed()) }()
			var calls []*call[creation, verification.Created]
			admits := newCreationFilter()
			for _, n := range news {
				c := &call[creation, verification.Created]{ctx: ctx, in: creation{New: n, limits: limitsOfCodes, version: newVersion()}}
				Expect(admits(c)).To(BeTrue())
				calls = append(calls, c)
			}
			Expect(newCreationBatch(project, calls).run(ctx, conn)).To(Succeed())
			return calls, seen
		}
		_, seen := runBatch(creationOf(1), creationOf(2))
		Expect(seen).To(Equal(countStatements{
			sqlBegin: 1, sqlLockKeys: 1, sqlKeyWindows: 1, sqlRead: 1, sqlCountKeys: 1, sqlInsertRequests: 1, sqlCommit: 1,
		}))

		again := codeOf(30)
		again.Phone = codeOf(20).Phone
		news := []verification.New{creationOf(10), codeOf(20), again}
		for i := range 11 {
			news = append(news, codeOf(100+i), creationOf(200+i))
		}
		calls, seen := runBatch(news...)
		Expect(seen[sqlGroups] + seen[sqlDeclines] + seen[sqlInsertGroupAdmissions]).To(Equal(3))
		codes := 0
		for _, c := range calls {
			switch {
			case c.in.Terms.Deliver == "":
				Expect(c.err).NotTo(HaveOccurred(), c.in.ID)
			case c.err == nil:
				codes++
			default:
				Expect(c.err).To(MatchError(&verification.Error{Code: verification.CodeCodesLimited}))
			}
		}
		Expect(codes).To(Equal(10))
		Expect(calls[2].err).To(HaveField("Limit", verification.LimitCodeNumber), "two for one number in one batch")
		Expect(calls[len(calls)-2].err).To(HaveField("Limit", verification.LimitCodes))
		Expect(queryScalar[int](ctx, "SELECT count(*) FROM "+schema+".phoneproof_group_admissions")).To(Equal(10*2 + 10*3))
		Expect(queryScalar[int](ctx, "SELECT count(*) FROM "+schema+".phoneproof_requests WHERE deliver = 'CODE'")).To(Equal(10))
	})

	It("are counted by their own index, and hide no activity of links", func(ctx SpecContext) {
		uri, schema := inSchema(ctx)
		store := openStore(ctx, project, uri)
		insertFinished(ctx, schema, project, "link", 20, time.Minute)
		insertFinished(ctx, schema, project, "old", 20_000, 2*time.Hour)
		insertFinishedCodes(ctx, schema, project, 200)
		insertFinishedCodes(ctx, schema, "books/other", 20_000)
		since := time.Now().Add(-time.Hour)
		Expect(store.CodesStarted(ctx, verification.WhatsApp, since)).To(Equal(map[string]int{"backend": 200}))
		Expect(store.Activity(ctx, verification.WhatsApp, since)).To(Equal(verification.Activity{Expired: 20}))
		for _, prepare := range []string{"SELECT 1", "ANALYZE " + schema + ".phoneproof_requests"} {
			execStatements(ctx, prepare)
			Expect(countRows(ctx, uri, sqlCodes, project, since, verification.MostCodesCounted, string(verification.WhatsApp))).To(BeNumerically("<=", 200))
			Expect(countActivityReads(ctx, uri, since)).To(BeNumerically("<=", 20+200))
		}
		insertFinishedCodes(ctx, schema, "books/many", verification.MostCounted+1)
		insertFinished(ctx, schema, "books/many", "link", 20, time.Minute)
		many := openStore(ctx, "books/many", uri)
		Expect(many.CodesStarted(ctx, verification.WhatsApp, since)).To(Equal(map[string]int{"backend": verification.MostCounted + 1}))
		Expect(many.Activity(ctx, verification.WhatsApp, since)).To(Equal(verification.Activity{Expired: 20}))
	})

	It("come with tables that the version before goes on using", func(ctx SpecContext) {
		uri, schema := inSchema(ctx)
		tables, err := fs.ReadFile(migrations, "migrations/00001_tables.sql")
		Expect(err).NotTo(HaveOccurred())
		pool, err := pgxpool.New(ctx, uri)
		Expect(err).NotTo(HaveOccurred())
		defer pool.Close()
		Expect(migrate(ctx, pool, fstest.MapFS{"migrations/00001_tables.sql": {Data: tables}})).To(Succeed())
		insertFinished(ctx, schema, project, "before", 1, time.Minute)

		s := openStore(ctx, project, uri)
		code := codeOf(1)
		Expect(s.Create(ctx, code, limitsOfCodes)).Error().NotTo(HaveOccurred())
		sent, err := s.Update(ctx, code.ID, func(r *verification.Request, now time.Time) error {
			r.ProvenAt, r.Actual, r.Via = now, r.Phone, verification.ViaCode
			r.Code = verification.CodeResult{State: verification.CodeSent, Reason: "undeliverable"}
			return nil
		})
		Expect(err).NotTo(HaveOccurred())
		insertFinished(ctx, schema, project, "beside", 1, time.Minute)
		execStatements(ctx, "UPDATE "+schema+`.phoneproof_requests SET phase = 'EXPIRED', version = version + 1 WHERE id = '`+code.ID+"'")
		Expect(s.Read(ctx, code.ID)).To(And(
			HaveField("Phase", verification.Expired), HaveField("Terms", sent.Terms), HaveField("Via", verification.ViaCode),
			HaveField("Code", sent.Code),
		))
		for _, id := range []string{"before-1", "beside-1"} {
			Expect(s.Read(ctx, id)).To(And(HaveField("Terms", verification.Terms{}), HaveField("Via", verification.ViaMessage),
				HaveField("Code", verification.CodeResult{})), id)
		}
		Expect(migrate(ctx, pool, fstest.MapFS{"migrations/00001_tables.sql": {Data: tables}})).To(Succeed(), "the version before, again")
	})
})
