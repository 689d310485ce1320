package integration_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/pgserver"
)

// databaseShop is a shop without a cluster: its project is a file, and its requests are in a database of its own.
type databaseShop struct {
	*shop

	database database
	project  string
	flags    []string

	mu sync.Mutex
}

// database is a database of a PostgreSQL server.
type database struct {
	server *pgserver.Server
	name   string
}

// connectionURI returns the URI of the database.
func (d database) connectionURI() string { return d.server.URI(d.name) }

// newDatabase creates a database on the server that specs share, or skips the spec without one.
func newDatabase(ctx context.Context) database {
	GinkgoHelper()
	if sharedDatabase == nil {
		Skip(pgserver.ErrNotInstalled.Error())
	}
	d := database{server: sharedDatabase, name: "spec_" + strings.ToLower(rand.Text())}
	Expect(d.server.Exec(ctx, "postgres", "CREATE DATABASE "+d.name)).To(Succeed())
	return d
}

// startDatabase starts a server for one spec, or skips the spec if PostgreSQL is not installed.
func startDatabase(ctx context.Context, o pgserver.Options) database {
	GinkgoHelper()
	server, err := pgserver.Start(ctx, o)
	if errors.Is(err, pgserver.ErrNotInstalled) {
		Skip(err.Error())
	}
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Stop)
	return database{server: server, name: "postgres"}
}

// newDatabaseShop creates a project with a database and starts only its receiver.
func newDatabaseShop(ctx context.Context, d database) *databaseShop {
	GinkgoHelper()
	return newDatabaseShopWith(ctx, d, func(*verifyv1.VerificationProject) {})
}

// newDatabaseShopWith is newDatabaseShop with changes to the project.
func newDatabaseShopWith(ctx context.Context, d database, edit func(*verifyv1.VerificationProject)) *databaseShop {
	GinkgoHelper()
	o := &databaseShop{
		shop: &shop{
			namespace: "outlet-" + strings.ToLower(rand.Text()[:10]), secrets: GinkgoT().TempDir(), receiver: startReceiver(),
		},
		database: d,
	}
	o.writeSecrets()
	o.writeSecret("uri", d.connectionURI())
	project := o.newProject()
	project.TypeMeta = metav1.TypeMeta{APIVersion: verifyv1.GroupVersion.String(), Kind: "VerificationProject"}
	project.Spec.Request.TTL = "1m"
	project.Spec.Storage = databaseStorage()
	edit(project)
	o.project = writeProject(project)
	o.flags = append([]string{"--claim-lease=" + claimLease.String()}, leaseFlags...)
	return o
}

// writeProject writes a project to a file and returns its path.
func writeProject(project *verifyv1.VerificationProject) string {
	GinkgoHelper()
	content, err := yaml.Marshal(project)
	Expect(err).NotTo(HaveOccurred())
	dir := GinkgoT().TempDir()
	writeFile(dir, "project.yaml", string(content))
	return filepath.Join(dir, "project.yaml")
}

// claimLease is when the claim of a killed replica ends: longer than an attempt and its record take on a loaded machine, and much shorter
// than the default.
const claimLease = 20 * time.Second

func databaseStorage() verifyv1.Storage {
	return verifyv1.Storage{
		Type: verifyv1.StoragePostgreSQL, PostgreSQL: &verifyv1.PostgreSQL{URISecretRef: verifyv1.URISecretRef{Name: "shop", Key: "uri"}},
	}
}

// startOne starts a replica without waiting for it.
func (o *databaseShop) startOne() *replica {
	GinkgoHelper()
	r := startReplica(append([]string{"--project-file", o.project, "--secrets-dir", o.secrets}, o.flags...)...)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.replicas = append(o.replicas, r)
	return r
}

// start starts replicas and waits until they are ready.
func (o *databaseShop) start(ctx context.Context, n int) {
	GinkgoHelper()
	for range n {
		o.startOne()
	}
	for _, r := range o.replicas {
		Eventually(r.Ready).WithContext(ctx).WithArguments(ctx).Should(BeTrue(), r.output)
	}
}

// startedRequest is a started verification.
type startedRequest struct{ id, number, text string }

// tryStart starts a verification through a replica, and returns the HTTP status; 0 without a response.
func (o *databaseShop) tryStart(ctx context.Context, through *replica, number, idempotencyKey string) (startedRequest, int, http.Header) {
	status, header, answer := through.sendCall(ctx, o.key, http.MethodPost, "/api/verify/init",
		fmt.Sprintf(`{"phoneNumber": %q, "method": "WHATSAPP", %s}`, number, clientData), idempotencyKey)
	id, _ := answer["requestId"].(string)
	text, _ := answer["expectedText"].(string)
	return startedRequest{id, number, text}, status, header
}

// startRequest is tryStart that must succeed. Calls that the store had no time for are repeated with the same key, like clients.
func (o *databaseShop) startRequest(ctx context.Context, through *replica, number, idempotencyKey string) startedRequest {
	GinkgoHelper()
	var b startedRequest
	Eventually(func() (status int) {
		b, status, _ = o.tryStart(ctx, through, number, idempotencyKey)
		return status
	}).WithContext(ctx).ShouldNot(Equal(http.StatusServiceUnavailable))
	Expect(b.id).NotTo(BeEmpty(), "the status is 200")
	return b
}

// verifyNumber posts the end user's text like Meta, repeated like the platform does, which must succeed.
func (*databaseShop) verifyNumber(ctx context.Context, through *replica, b startedRequest) {
	GinkgoHelper()
	signedText(b.number, b.text, time.Now()).mustPostTo(ctx, through)
}

// queryRow reads one row.
func (d database) queryRow(ctx context.Context, statement string, into ...any) error {
	conn, err := pgx.Connect(ctx, d.connectionURI())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	return conn.QueryRow(ctx, statement).Scan(into...)
}

// queryCount returns the result of a count; -1 while the database does not answer.
func (o *databaseShop) queryCount(ctx context.Context, statement string) int {
	var n int
	if err := o.database.queryRow(ctx, statement, &n); err != nil {
		return -1
	}
	return n
}

const undeliveredEvents = `SELECT count(*) FROM phoneproof_requests WHERE phase = 'VERIFIED' AND delivered_at IS NULL`

var _ = Describe("A project file with a database", func() {
	It("moves to another database when its URI does, without a restart", func(ctx SpecContext) {
		o, second := newDatabaseShop(ctx, newDatabase(ctx)), newDatabase(ctx)
		o.start(ctx, 1)
		o.startRequest(ctx, o.replicas[0], "+4915112345001", "first")

		By("naming a database that does not exist")
		o.writeSecret("uri", o.database.server.URI("nowhere"))
		Eventually(o.replicas[0].output).WithContext(ctx).Should(ContainSubstring("does not exist"))
		o.startRequest(ctx, o.replicas[0], "+4915112345002", "second") // the previous database stays in use

		o.writeSecret("uri", second.connectionURI())
		n := 2
		Eventually(func() int {
			n++
			began := time.Now()
			_, status, _ := o.tryStart(ctx, o.replicas[0], fmt.Sprintf("+49151123450%02d", n%100), strconv.Itoa(n))
			if time.Since(began) < time.Second { // otherwise the store timed out on a loaded machine
				Expect(status).To(Equal(http.StatusOK), "no refusal during the move")
			}
			moved := 0
			if err := second.queryRow(ctx, "SELECT count(*) FROM phoneproof_requests", &moved); err != nil {
				return 0 // its tables are being created
			}
			return moved
		}).WithContext(ctx).Should(BeNumerically(">", 0))
		Expect(o.queryCount(ctx, "SELECT count(*) FROM phoneproof_requests")).To(BeNumerically(">=", 2))
	}, SpecTimeout(hang))
})
