package postgres

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/store/storetest"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// lined returns a URI of the server that leads over a line of its own.
func lined(ctx context.Context, schema string) (uri string, cut func() (repair func())) {
	GinkgoHelper()
	line, err := server.NewLine(ctx)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(line.Close)
	return with(with(line.URI("postgres"), "search_path", schema+",pg_catalog"), "pool_max_conns", "6"), line.Cut
}

func queueOf(s verification.Store) verification.Queue {
	return s.(*Store)
}

var _ = Describe("The store contract, by a clock that is stepped", func() {
	storetest.Exercise(func() storetest.Harness {
		ctx := context.Background() // Exercise has none for us
		schema := newSchema(ctx)
		advance := newClock(ctx, schema, time.Date(2026, 2, 28, 23, 59, 59, 987654000, time.UTC))
		uri, cut := lined(ctx, schema)
		return storetest.Harness{
			Open:     func(project string) verification.Store { return open(ctx, project, uri) },
			Queue:    queueOf,
			Advance:  advance,
			Uncapped: true,
			Break:    cut,
		}
	})
})

// The same with the clock of the server, in the way in which statements go through PgBouncer, and by a role that may use nothing
// but the schema of its name.
var _ = Describe("The store contract, by the server's clock, without prepared statements, in a schema of its own", func() {
	storetest.Exercise(func() storetest.Harness {
		ctx := context.Background() // Exercise has none for us
		tenant := newTenant(ctx)
		uri, cut := lined(ctx, tenant)
		uri = with(as(tenant, uri), "default_query_exec_mode", "exec")
		return storetest.Harness{
			Open:     func(project string) verification.Store { return open(ctx, project, uri) },
			Queue:    queueOf,
			Uncapped: true,
			Break:    cut,
		}
	})
})
