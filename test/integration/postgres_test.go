package integration_test

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
	"github.com/phoneproof/phoneproof/internal/settings"
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

const appSecret = "0123456789abcdef0123456789abcdef"

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
	key, err := settings.NewAPIKey(rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	o.key = key
	for name, value := range map[string]string{
		"api-key": key, "webhook": webhookSecret, "access-token": "EAAG0123456789", "app-secret": appSecret,
		"uri": d.connectionURI(),
	} {
		o.writeSecret(name, value)
	}
	project := o.newProject()
	project.TypeMeta = metav1.TypeMeta{APIVersion: verifyv1.GroupVersion.String(), Kind: "VerificationProject"}
	project.Spec.Request.TTL = "1m"
	project.Spec.Storage = databaseStorage()
	edit(project)
	content, err := yaml.Marshal(project)
	Expect(err).NotTo(HaveOccurred())
	dir := GinkgoT().TempDir()
	writeFile(dir, "project.yaml", string(content))
	o.project = filepath.Join(dir, "project.yaml")
	o.flags = append([]string{"--claim-lease=" + claimLease.String()}, leaseFlags...)
	return o
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
	r := startReplica(append([]string{
		"--project-file", o.project, "--secrets-dir", o.secrets,
		"--whatsapp-url=http://127.0.0.1:1", "--telegram-url=http://127.0.0.1:1",
	}, o.flags...)...)
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
		Eventually(r.isReady).WithContext(ctx).WithArguments(ctx).Should(BeTrue(), r.output)
	}
}

// startedRequest is a started verification.
type startedRequest struct{ id, number, text string }

// tryStart starts a verification through a replica, and returns the HTTP status; 0 without a response.
func (o *databaseShop) tryStart(ctx context.Context, through *replica, number, idempotencyKey string) (startedRequest, int, http.Header) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+through.api+"/api/verify/init",
		strings.NewReader(fmt.Sprintf(`{"phoneNumber": %q, "method": "WHATSAPP", %s}`, number, clientData)))
	if err != nil {
		panic(err) // cannot happen: it consists of constants
	}
	request.Header.Set("Authorization", "Bearer "+o.key)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", idempotencyKey)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return startedRequest{}, 0, nil
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct {
		RequestID    string `json:"requestId"`
		ExpectedText string `json:"expectedText"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return startedRequest{}, 0, nil
	}
	return startedRequest{answer.RequestID, number, answer.ExpectedText}, response.StatusCode, response.Header
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

// verifyNumber is tryVerify that must succeed, repeated like the platform does.
func (o *databaseShop) verifyNumber(ctx context.Context, through *replica, b startedRequest) {
	GinkgoHelper()
	var status int
	Eventually(func() int {
		status = o.tryVerify(ctx, through, b)
		return status
	}).WithContext(ctx).ShouldNot(Equal(http.StatusServiceUnavailable))
	Expect(status).To(Equal(http.StatusOK))
}

// tryVerify posts the end user's text like Meta, and returns the response's status; 0 without a response.
func (o *databaseShop) tryVerify(ctx context.Context, through *replica, b startedRequest) int {
	body, err := json.Marshal(map[string]any{
		"object": "whatsapp_business_account",
		"entry": []any{map[string]any{"id": "1", "changes": []any{map[string]any{"field": "messages", "value": map[string]any{
			"messaging_product": "whatsapp",
			"metadata":          map[string]any{"display_phone_number": "4915112345670", "phone_number_id": "1234567890"},
			"messages": []any{map[string]any{
				"from": strings.TrimPrefix(b.number, "+"), "id": "wamid." + b.id, "timestamp": strconv.FormatInt(time.Now().Unix(), 10),
				"type": "text", "text": map[string]any{"body": b.text},
			}},
		}}}}},
	})
	if err != nil {
		panic(err) // cannot happen: it consists of strings
	}
	mac := hmac.New(sha256.New, []byte(appSecret))
	mac.Write(body)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+through.api+"/hooks/whatsapp", strings.NewReader(string(body)))
	if err != nil {
		panic(err) // cannot happen: it consists of constants
	}
	request.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
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
	It("is served by several replicas, and by one whose database went away and came back", func(ctx SpecContext) {
		o := newDatabaseShop(ctx, startDatabase(ctx, pgserver.Options{}))
		o.start(ctx, 2)
		one, other := o.replicas[0], o.replicas[1]
		b := o.startRequest(ctx, one, "+4915112345001", "first")
		o.verifyNumber(ctx, other, b)
		// By request: an event whose record was lost with the database is sent again, once.
		delivered := func() map[string][]delivery { return o.receiver.byRequest(webhookSecret) }
		Eventually(delivered).WithContext(ctx).Should(HaveLen(1))
		Expect(o.receiver.deliveries()[0].body).To(ContainSubstring(clientData))
		Eventually(func() bool { return one.isLeading() != other.isLeading() }).WithContext(ctx).
			Should(BeTrue(), "one of them calls the messengers")

		By("killing the database")
		Expect(o.database.server.Crash()).To(Succeed())
		down := func() {
			_, status, header := o.tryStart(ctx, one, "+4915112345002", "second")
			Expect(status).To(Equal(http.StatusServiceUnavailable), "while the database is away")
			Expect(header.Get("Retry-After")).NotTo(BeEmpty())
			Eventually(func() int { return one.probeStatus(ctx, "/readyz") }).WithContext(ctx).Should(Equal(http.StatusServiceUnavailable))
			Expect(one.probeStatus(ctx, "/livez")).To(Equal(http.StatusOK))
			Expect(o.tryVerify(ctx, one, b)).To(Equal(http.StatusServiceUnavailable), "the platform is to send it again")
		}
		down()
		Expect(o.database.server.Up(ctx)).To(Succeed())
		back := func(key string) {
			Eventually(one.isReady).WithContext(ctx).WithArguments(ctx).Should(BeTrue())
			o.verifyNumber(ctx, one, o.startRequest(ctx, one, "+4915112345002", key))
		}
		back("second")
		Eventually(delivered).WithContext(ctx).Should(HaveLen(2))

		By("freezing every process of the database")
		thaw, err := o.database.server.Freeze()
		Expect(err).NotTo(HaveOccurred())
		down()
		Expect(thaw()).To(Succeed())
		back("third")
		Eventually(delivered).WithContext(ctx).Should(HaveLen(3))
		for id, got := range delivered() {
			Expect(len(got)).To(BeElementOf(1, 2), id)
		}
		Expect(one.isRunning() && other.isRunning()).To(BeTrue())
	}, SpecTimeout(hang))

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
