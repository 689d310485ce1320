package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/jackc/pgx/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/phoneproof/phoneproof/internal/redact"
	"github.com/phoneproof/phoneproof/test/pgserver"
	_ "github.com/phoneproof/phoneproof/test/skipped" // prints which specs are skipped and why
)

func TestPostgres(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "PostgreSQL store")
}

// server is the PostgreSQL server of all specs; each spec uses its own schema.
var server *pgserver.Server

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	server, err = pgserver.Start(ctx, pgserver.Options{Output: GinkgoWriter})
	if errors.Is(err, pgserver.ErrNotInstalled) {
		Skip(err.Error())
	}
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Stop)
})

// newSchema creates a schema and returns its name. Stores keep their tables there if search_path in their URI names it.
func newSchema(ctx context.Context) string {
	GinkgoHelper()
	name := "test_" + strings.ToLower(rand.Text()[:12])
	execStatements(ctx, "CREATE SCHEMA "+name)
	return name
}

// newTenant creates a role as docs/postgresql.md says, which may use only its own schema of the database postgres, and returns the name of
// both. PostgreSQL's default search_path puts its tables there.
func newTenant(ctx context.Context) string {
	GinkgoHelper()
	name := "tenant_" + strings.ToLower(rand.Text()[:12])
	page, err := os.ReadFile("../../../docs/postgresql.md")
	Expect(err).NotTo(HaveOccurred())
	_, block, _ := strings.Cut(string(page), "```sql\n")
	block, _, found := strings.Cut(block, "```")
	Expect(found).To(BeTrue(), "a block of SQL")
	execStatements(ctx, strings.ReplaceAll(block, "shop", name))
	return name
}

// withRole returns a URI of the server for another role than its owner.
func withRole(role, uri string) string { return strings.Replace(uri, "//postgres@", "//"+role+"@", 1) }

// newBouncer runs a PgBouncer with three connections as a role until the spec ends, and returns its port.
func newBouncer(ctx context.Context, role string) (port int) {
	GinkgoHelper()
	port, stop, err := server.NewBouncer(ctx, role, 3)
	if errors.Is(err, pgserver.ErrNoBouncer) {
		Skip(err.Error())
	}
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(stop)
	return port
}

// connectAsOwner connects as the owner of the server.
func connectAsOwner(ctx context.Context) *pgx.Conn {
	GinkgoHelper()
	conn, err := pgx.Connect(ctx, server.URI("postgres"))
	Expect(err).NotTo(HaveOccurred())
	return conn
}

// execStatements executes statements as the owner of the server.
func execStatements(ctx context.Context, statements ...string) {
	GinkgoHelper()
	conn := connectAsOwner(ctx)
	defer func() { Expect(conn.Close(ctx)).To(Succeed()) }()
	for _, statement := range statements {
		_, err := conn.Exec(ctx, statement)
		Expect(err).NotTo(HaveOccurred(), statement)
	}
}

// withSetting returns a URI with one more setting.
func withSetting(uri, name, value string) string {
	return uri + "&" + name + "=" + url.QueryEscape(value)
}

// newClock creates a stopped clock in the schema that replaces the server's own, and returns a function that advances it.
func newClock(ctx context.Context, schema string, at time.Time) (advance func(time.Duration)) {
	GinkgoHelper()
	execStatements(ctx,
		fmt.Sprintf("CREATE TABLE %s.clock (at timestamptz NOT NULL)", schema),
		fmt.Sprintf("INSERT INTO %s.clock VALUES ('%s')", schema, at.Format(time.RFC3339Nano)),
		fmt.Sprintf("CREATE FUNCTION %[1]s.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT at FROM %[1]s.clock'", schema),
		fmt.Sprintf("CREATE FUNCTION %[1]s.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT at FROM %[1]s.clock'", schema),
	)
	return func(d time.Duration) {
		execStatements(context.WithoutCancel(ctx),
			fmt.Sprintf("UPDATE %s.clock SET at = at + interval '%d microseconds'", schema, d.Microseconds()))
	}
}

// openStore starts a store, waits until it is ready, and ends it with the spec.
func openStore(ctx context.Context, project, uri string) *Store {
	GinkgoHelper()
	s := startStore(ctx, project, uri)
	Eventually(s.Ready).WithContext(ctx).WithTimeout(time.Minute).WithPolling(time.Millisecond).WithArguments(ctx).Should(Succeed())
	return s
}

// startStore starts a store, whose database may be unavailable, and ends it with the spec.
func startStore(ctx context.Context, project, uri string) *Store {
	GinkgoHelper()
	return startStoreAt(ctx, project, func() Address { return Address{URI: redact.New([]byte(uri))} })
}

// startStoreAt starts a store whose address may change, and ends it with the spec.
func startStoreAt(ctx context.Context, project string, address func() Address) *Store {
	GinkgoHelper()
	s, err := New(Options{Project: project, Address: address, Log: logr.Discard(), Registerer: prometheus.NewRegistry()})
	Expect(err).NotTo(HaveOccurred())
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- s.Start(running) }()
	DeferCleanup(func() {
		stop()
		Eventually(ended).WithTimeout(time.Minute).Should(Receive(BeNil()))
	})
	return s
}
