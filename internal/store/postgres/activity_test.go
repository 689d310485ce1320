package postgres

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// insertFinished stores that many expired requests of the project, which were finished so long ago.
func insertFinished(ctx context.Context, schema, of, name string, requests int, ago time.Duration) {
	GinkgoHelper()
	execStatements(ctx, fmt.Sprintf(`INSERT INTO %s.phoneproof_requests
		(project, id, phone, method, created_at, expires_at, key_name, body_hash, display_name, phase, version, work, since)
		SELECT '%s', '%s-' || i, '+4915112345678', 'WHATSAPP', at, at, 'backend', '', '', 'EXPIRED', i, 3, at
		FROM (SELECT i, now() - interval '%d seconds' AS at FROM generate_series(1, %d) AS i) AS finished`,
		schema, of, name, int(ago.Seconds()), requests))
}

// countActivityReads returns how many rows the database reads for the activity since a time.
func countActivityReads(ctx context.Context, uri string, since time.Time) int {
	GinkgoHelper()
	return countRows(ctx, uri, sqlActivity, project, string(verification.WhatsApp), since, since, verification.MostCounted, activityMargin)
}

var _ = Describe("Activity", func() {
	It("reads neither what was finished before nor other projects, with and without statistics", func(ctx SpecContext) {
		uri, schema := inSchema(ctx)
		store := openStore(ctx, project, uri)
		insertFinished(ctx, schema, project, "old", 20_000, 2*time.Hour)
		insertFinished(ctx, schema, "books/other", "other", 20_000, time.Minute)
		insertFinished(ctx, schema, project, "new", 20, time.Minute)
		since := time.Now().Add(-time.Hour)
		Expect(store.Activity(ctx, verification.WhatsApp, since)).To(Equal(verification.Activity{Expired: 20}))
		Expect(store.Activity(ctx, verification.Telegram, since)).To(BeZero())
		Expect(countActivityReads(ctx, uri, since)).To(BeNumerically("<=", 20))
		execStatements(ctx, "ANALYZE "+schema+".phoneproof_requests")
		Expect(countActivityReads(ctx, uri, since)).To(BeNumerically("<=", 20))
	})

	It("hears a request with a code among as many deliveries as are read", func(ctx SpecContext) {
		uri, schema := inSchema(ctx)
		store := openStore(ctx, project, uri)
		insertFinished(ctx, schema, project, "code", 1, 2*time.Minute)
		execStatements(ctx, "UPDATE "+schema+".phoneproof_requests SET deliver = 'CODE', phase = 'VERIFIED', verified_at = since")
		insertFinished(ctx, schema, project, "delivery", verification.MostCounted, time.Minute)
		execStatements(ctx, "UPDATE "+schema+".phoneproof_requests SET deliver = 'GIVEN', work = 5 WHERE deliver = ''")
		activity, err := store.Activity(ctx, verification.WhatsApp, time.Now().Add(-time.Hour))
		Expect(err).NotTo(HaveOccurred())
		Expect(activity).To(And(HaveField("Expired", 0), HaveField("LastHeard", Not(BeZero()))))
	})

	It("reads a bounded number of requests, the latest", func(ctx SpecContext) {
		uri, schema := inSchema(ctx)
		store := openStore(ctx, project, uri)
		insertFinished(ctx, schema, project, "earlier", 100, 2*time.Minute)
		insertFinished(ctx, schema, project, "latest", verification.MostCounted, time.Minute)
		since := time.Now().Add(-time.Hour)
		Expect(store.Activity(ctx, verification.WhatsApp, since)).To(Equal(verification.Activity{Expired: verification.MostCounted}))
		Expect(countActivityReads(ctx, uri, since)).To(BeNumerically("<=", verification.MostCounted))
	})
})
