package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// manyStored inserts requests of two projects: one in 100 is pending, one in 10 has expired, one in 20 has a reference of two, one in 500
// has a number of two forms that most do not have, and one in 1,000 is of a test key, with a number of its own. All expired ones were sent
// a code, and the first of 10,000 is a delivery.
const manyStored = `INSERT INTO phoneproof_requests (project, id, phone, method, test, created_at, expires_at, key_name, body_hash,
		phase, reference, version, work, deliver, since)
	SELECT CASE WHEN i % 7 = 0 THEN 'shop/other' ELSE $1 END, 'vr' || md5(i::text),
		CASE i % 1000 WHEN 7 THEN '+525512345678' WHEN 57 THEN '+5215512345678' WHEN 504 THEN '+12025550115' ELSE '+4915112345678' END, 'WHATSAPP', i % 1000 = 504,
		timestamptz '2026-03-01' + i / 3 * interval '1 second', timestamptz '2100-01-01', 'backend', '',
		CASE WHEN i % 100 = 1 THEN 'PENDING' WHEN i % 10 = 2 THEN 'EXPIRED' ELSE 'VERIFIED' END,
		CASE WHEN i % 20 = 3 THEN 'order-' || i % 40 ELSE '' END, i, CASE WHEN i % 100 = 1 THEN 1 WHEN i % 10000 = 2 THEN 5 ELSE 3 END,
		CASE WHEN i % 10000 = 2 THEN 'GIVEN' WHEN i % 10 = 2 THEN 'CODE' ELSE '' END,
		CASE WHEN i % 10000 = 2 THEN timestamptz '2026-03-01' + i / 3 * interval '1 second' ELSE now() END
	FROM generate_series(1, $2::bigint) AS i`

// blocksRead returns how many pages of the database a statement reads, by a plan that knows none of the arguments.
func blocksRead(ctx context.Context, conn *pgx.Conn, statement string, arguments []any) int {
	GinkgoHelper()
	for _, setup := range []string{"DEALLOCATE ALL", "SET plan_cache_mode = force_generic_plan", "PREPARE page AS " + statement} {
		_, err := conn.Exec(ctx, setup, pgx.QueryExecModeSimpleProtocol)
		Expect(err).NotTo(HaveOccurred())
	}
	values := make([]string, len(arguments))
	for i, argument := range arguments {
		switch given := argument.(type) {
		case *time.Time:
			if values[i] = "NULL"; given != nil {
				values[i] = given.Format("'" + time.RFC3339Nano + "'")
			}
			continue
		case time.Time:
			argument = given.Format(time.RFC3339Nano)
		}
		values[i] = fmt.Sprintf("'%v'", argument)
	}
	var explained []byte
	Expect(conn.QueryRow(ctx, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE page("+strings.Join(values, ", ")+")", pgx.QueryExecModeSimpleProtocol).Scan(&explained)).To(Succeed())
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		} `json:"Plan"`
	}
	Expect(json.Unmarshal(explained, &plans)).To(Succeed())
	return plans[0].Plan.Hit + plans[0].Plan.Read
}

var _ = Describe("A list of many requests", Ordered, func() {
	const stored = 60_000
	var (
		s    *Store
		conn *pgx.Conn
	)
	BeforeAll(func(ctx SpecContext) {
		uri, _ := inSchema(ctx)
		s = openStore(ctx, project, uri)
		var err error
		conn, err = pgx.Connect(ctx, uri)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(conn.Close(ctx)).To(Succeed()) })
		_, err = conn.Exec(ctx, "ALTER TABLE phoneproof_requests SET (autovacuum_enabled = off)")
		Expect(err).NotTo(HaveOccurred())
		_, err = conn.Exec(ctx, manyStored, project, stored)
		Expect(err).NotTo(HaveOccurred())
	})

	// blocks returns how many pages of the database one page of the list reads, by a plan that knows no value of the query.
	blocks := func(ctx context.Context, q verification.ListQuery) int {
		GinkgoHelper()
		statement, arguments := s.listStatement(q)
		return blocksRead(ctx, conn, statement, arguments)
	}
	number := func(e164 string) phone.Number {
		GinkgoHelper()
		n, err := phone.FromE164(e164)
		Expect(err).NotTo(HaveOccurred())
		return n
	}
	filters := map[string]verification.ListFilter{
		"a number":                 {Phone: number("+525512345678")},
		"a number and a status":    {Phone: number("+5215512345678"), Phase: verification.Expired},
		"a number and a time":      {Phone: number("+5215512345678"), Since: time.Date(2026, 3, 1, 1, 0, 0, 0, time.UTC)},
		"a number of test keys":    {Phone: number("+12025550115"), Test: true},
		"an unknown number":        {Phone: number("+4915112345679")},
		"all":                      {},
		"of test keys":             {Test: true},
		"of test keys, expired":    {Test: true, Phase: verification.Expired},
		"of test keys, referenced": {Test: true, Reference: "order-3"},
		"pending":                  {Phase: verification.Pending},
		"verified":                 {Phase: verification.Verified},
		"expired":                  {Phase: verification.Expired},
		"a reference":              {Reference: "order-3"},
		"a reference and a status": {Reference: "order-23", Phase: verification.Verified},
		"an unknown reference":     {Reference: "order-4"},
		"deliveries":               {Deliveries: true},
		"deliveries, pending":      {Deliveries: true, Phase: verification.Pending},
		"deliveries to a number":   {Deliveries: true, Phone: number("+525512345678")},
		"deliveries of test keys":  {Deliveries: true, Test: true},
		"a time":                   {Since: time.Date(2026, 3, 1, 1, 0, 0, 0, time.UTC)},
		"a time and a status":      {Since: time.Date(2026, 3, 1, 1, 0, 0, 0, time.UTC), Phase: verification.Expired},
	}
	places := map[string]verification.Position{
		"the beginning": {},
		"the middle":    {CreatedAt: time.Date(2026, 3, 1, 2, 46, 0, 0, time.UTC), ID: "vr5"},
		"the end":       {CreatedAt: time.Date(2026, 3, 1, 0, 0, 30, 0, time.UTC), ID: "vr5"},
	}
	const limit = 50
	// Each of the rows that a page needs, of three phases at most, is one block at worst, and the way to it a few.
	const most = 3*(limit+1) + 60

	for _, analyzed := range []bool{false, true} {
		It(fmt.Sprintf("reads few blocks wherever the page is, with statistics: %v", analyzed), func(ctx SpecContext) {
			if analyzed {
				_, err := conn.Exec(ctx, "VACUUM ANALYZE phoneproof_requests", pgx.QueryExecModeSimpleProtocol)
				Expect(err).NotTo(HaveOccurred())
			}
			for name, filter := range filters {
				for where, place := range places {
					q := verification.ListQuery{ListFilter: filter, After: place, Limit: limit}
					Expect(blocks(ctx, q)).To(BeNumerically("<=", most), "%s, from %s", name, where)
				}
			}
		})
	}

	It("walks to the end", func(ctx SpecContext) {
		seen := map[string]bool{}
		q := verification.ListQuery{ListFilter: verification.ListFilter{Phase: verification.Expired}, Limit: verification.MaxPage}
		for pages := 0; ; pages++ {
			page, err := s.List(ctx, q)
			Expect(err).NotTo(HaveOccurred())
			for _, r := range page.Requests {
				Expect(seen).NotTo(HaveKey(r.ID))
				seen[r.ID] = true
			}
			if q.After = page.Next; page.Next.IsZero() {
				break
			}
		}
		var want int
		Expect(conn.QueryRow(ctx, "SELECT count(*) FROM phoneproof_requests WHERE project = $1 AND phase = 'EXPIRED' AND work <> 5", pgx.QueryExecModeExec, project).
			Scan(&want)).To(Succeed())
		Expect(seen).To(HaveLen(want))
	})
})
