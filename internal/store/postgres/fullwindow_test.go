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

// limitsOf returns limits of requests per hour by number, prefix and subject.
func limitsOf(requests int) verification.Limits {
	rate := verification.Rate{Requests: requests, Period: time.Hour}
	return verification.Limits{
		PerKey: verification.Rate{Requests: 1_000_000, Period: time.Hour}, PerPhoneNumber: rate,
		PerPrefix: verification.PrefixRate{Rate: rate, Digits: 9}, PerSubject: rate,
	}
}

// fillWindows stores that many admissions for the number, the prefix and the subject of a creation, one microsecond apart up to
// now.
func fillWindows(ctx context.Context, schema string, n verification.New, requests int) {
	GinkgoHelper()
	groups := groupsOf(n, limitsOf(requests), &verification.Waits{})
	for _, window := range []struct{ table, column, name string }{
		{"number_admissions", "number", lineOf(n.Phone)},
		{"group_admissions", "name", groups[0].name}, {"group_admissions", "name", groups[1].name},
	} {
		execStatements(ctx, fmt.Sprintf(`INSERT INTO %s.phoneproof_%s (project, %s, place, at, until)
			SELECT '%s', '%s', i, now() - (%d - i) * interval '1 microsecond', now() + interval '1 hour' FROM generate_series(1, %d) AS i`,
			schema, window.table, window.column, project, window.name, requests, requests))
	}
}

// countReads reports whether a creation is refused, and how many rows the database reads to decide on it under the lock of its
// key.
func countReads(ctx context.Context, uri string, n verification.New, limits verification.Limits) (refused bool, rows int) {
	GinkgoHelper()
	conn, err := pgx.Connect(ctx, uri) // its own, because the statistics are per connection
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(conn.Close(ctx)).To(Succeed()) }()
	c := &call[creation, verification.Created]{ctx: ctx, in: creation{New: n, limits: limits, version: newVersion()}}
	w, _, err := newCreationBatch(project, []*call[creation, verification.Created]{c}).readWindows(ctx, conn)
	Expect(err).NotTo(HaveOccurred())
	Expect(conn.QueryRow(ctx, `SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint FROM pg_stat_xact_user_tables
		WHERE relname IN ('phoneproof_number_admissions', 'phoneproof_group_admissions')`).Scan(&rows)).To(Succeed())
	_, err = w.admitCreation(n)
	if err != nil {
		Expect(err).To(MatchError(&verification.Error{Code: verification.CodeRateLimited}))
	}
	return err != nil, rows
}

var _ = Describe("A full window", func() {
	It("of 10,000 costs as much to read as one of 10, by number, prefix and subject", func(ctx SpecContext) {
		uri, schema := inSchema(ctx)
		_, err := openStore(ctx, project, uri).Create(ctx, creationOf(0), limitsOf(1)) // inserts the row of the key
		Expect(err).NotTo(HaveOccurred())
		full, lowered, room := map[int]int{}, map[int]int{}, map[int]int{}
		for i, requests := range []int{10, 10_000} {
			n := creationOf((i + 1) * 1_000_000)
			n.Subject = fmt.Sprintf("subject-%d", i)
			fillWindows(ctx, schema, n, requests)
			var refused bool
			refused, full[requests] = countReads(ctx, uri, n, limitsOf(requests))
			Expect(refused).To(BeTrue())
			refused, lowered[requests] = countReads(ctx, uri, n, limitsOf(requests/2))
			Expect(refused).To(BeTrue())
			refused, room[requests] = countReads(ctx, uri, n, limitsOf(requests+1))
			Expect(refused).To(BeFalse())
		}
		AddReportEntry("rows read", fmt.Sprintf("full %v, after a lowered limit %v, with room for one %v", full, lowered, room))
		for _, reads := range []map[int]int{full, lowered, room} {
			Expect(reads[10_000]).To(Equal(reads[10]))
			Expect(reads[10_000]).To(BeNumerically("<=", 6), "the last admission of each, and the one that decides")
		}
	})

	It("is read only as far as the batch can count", func(ctx SpecContext) {
		uri, schema := inSchema(ctx)
		s := openStore(ctx, project, uri)
		_, err := s.Create(ctx, creationOf(0), limitsOf(1))
		Expect(err).NotTo(HaveOccurred())
		const stored, requests, batch = 1_000, 1_010, 20
		n := creationOf(1_000_000)
		n.Subject = "subject"
		fillWindows(ctx, schema, n, stored)
		limits := limitsOf(requests)
		limits.PerPhoneNumber = verification.Rate{}
		calls := make([]*call[creation, verification.Created], batch)
		for i := range calls {
			in := creationOf(1_000_000 + i) // all of one prefix
			in.Subject = n.Subject
			calls[i] = &call[creation, verification.Created]{ctx: ctx, in: creation{New: in, limits: limits, version: newVersion()}}
		}
		Expect(s.createAll(ctx, calls)).To(Succeed())
		for i, c := range calls {
			if i < requests-stored {
				Expect(c.err).NotTo(HaveOccurred(), "creation %d", i)
			} else {
				Expect(c.err).To(MatchError(&verification.Error{Code: verification.CodeRateLimited}), "creation %d", i)
			}
		}
		places := queryScalar[string](ctx, "SELECT string_agg(name || ':' || n || ':' || last, ', ' ORDER BY name) FROM "+
			"(SELECT name, count(*) AS n, max(place) AS last FROM "+schema+".phoneproof_group_admissions WHERE place > 1 GROUP BY name) AS t")
		Expect(places).To(Equal("prefix 491510100 backend:1009:1010, subject subject:1009:1010"))
	})
})
