package postgres

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/store/storetest"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// newLineURI returns a URI of the server over its own line, and a function that cuts the line.
func newLineURI(ctx context.Context, schema string) (uri string, cut func() (repair func())) {
	GinkgoHelper()
	line, err := server.NewLine(ctx)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(line.Close)
	return withSetting(withSetting(line.URI("postgres"), "search_path", schema+",pg_catalog"), "pool_max_conns", "6"), line.Cut
}

func queueOf(s verification.Store) verification.Queue {
	return s.(*Store)
}

var _ = Describe("The store contract, by a clock that is stepped", func() {
	// Each spec has its own projects, so that all can share the tables.
	begin := time.Date(2026, 2, 28, 23, 59, 59, 987654000, time.UTC)
	clock := sync.OnceValues(func() (schema string, advance func(time.Duration)) {
		schema = newSchema(context.Background())
		return schema, newClock(context.Background(), schema, begin)
	})
	storetest.Exercise(func() storetest.Harness {
		ctx := context.Background() // Exercise passes none
		schema, advance := clock()
		execStatements(ctx, fmt.Sprintf("UPDATE %s.clock SET at = '%s'", schema, begin.Format(time.RFC3339Nano)))
		uri, cut := newLineURI(ctx, schema)
		return storetest.Harness{
			Open:    func(project string) verification.Store { return openStore(ctx, project, uri) },
			Queue:   queueOf,
			Advance: advance,
			Break:   cut,
		}
	}, storetest.Cap)
})

// The same with the clock of the server, in the query mode that PgBouncer needs, and with a role that may use only the schema of
// its name. make test runs the topics that each send other statements, and make test-slow all.
var _ = Describe("The store contract, by the server's clock, without prepared statements, in its own schema", func() {
	topics := []string{
		"contacts", "deletion", "counts", "activity", "lists", "subscription", "rates", "events", "leases", "declines", "code limits", "test keys",
	}
	if os.Getenv("PHONEPROOF_TEST_SLOW") != "" {
		topics = nil
	}
	tenant := sync.OnceValue(func() string { return newTenant(context.Background()) })
	storetest.Exercise(func() storetest.Harness {
		ctx := context.Background() // Exercise passes none
		uri, cut := newLineURI(ctx, tenant())
		uri = withSetting(withRole(tenant(), uri), "default_query_exec_mode", "exec")
		return storetest.Harness{
			Open:  func(project string) verification.Store { return openStore(ctx, project, uri) },
			Queue: queueOf,
			Break: cut,
		}
	}, storetest.Cap|storetest.SteppedClock, topics...)
})
