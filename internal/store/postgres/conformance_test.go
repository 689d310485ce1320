package postgres

import (
	"context"
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
	storetest.Exercise(func() storetest.Harness {
		ctx := context.Background() // Exercise passes none
		schema := newSchema(ctx)
		advance := newClock(ctx, schema, time.Date(2026, 2, 28, 23, 59, 59, 987654000, time.UTC))
		uri, cut := newLineURI(ctx, schema)
		return storetest.Harness{
			Open:     func(project string) verification.Store { return openStore(ctx, project, uri) },
			Queue:    queueOf,
			Advance:  advance,
			Uncapped: true,
			Break:    cut,
		}
	})
})

// The same with the clock of the server, in the query mode that PgBouncer needs, and with a role that may use only the schema of
// its name.
var _ = Describe("The store contract, by the server's clock, without prepared statements, in its own schema", func() {
	storetest.Exercise(func() storetest.Harness {
		ctx := context.Background() // Exercise passes none
		tenant := newTenant(ctx)
		uri, cut := newLineURI(ctx, tenant)
		uri = withSetting(withRole(tenant, uri), "default_query_exec_mode", "exec")
		return storetest.Harness{
			Open:     func(project string) verification.Store { return openStore(ctx, project, uri) },
			Queue:    queueOf,
			Uncapped: true,
			Break:    cut,
		}
	})
})
