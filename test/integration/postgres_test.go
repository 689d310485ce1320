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

// outlet is a shop without a cluster: its project is a file, its requests are in a database of its own.
type outlet struct {
	*shop

	database database
	project  string
	flags    []string

	mu sync.Mutex
}

const appSecret = "0123456789abcdef0123456789abcdef"

// database is one of a PostgreSQL server.
type database struct {
	server *pgserver.Server
	name   string
}

// uri returns how to reach the database.
func (d database) uri() string { return d.server.URI(d.name) }

// newDatabase creates a database of the server that specs share, or skips the spec where there is none.
func newDatabase(ctx context.Context) database {
	GinkgoHelper()
	if sharedDatabase == nil {
		Skip(pgserver.ErrNotInstalled.Error())
	}
	d := database{server: sharedDatabase, name: "spec_" + strings.ToLower(rand.Text())}
	Expect(d.server.Exec(ctx, "postgres", "CREATE DATABASE "+d.name)).To(Succeed())
	return d
}

// startDatabase starts a server that is the spec's alone, or skips the spec where there is none.
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

// newOutlet makes a project with a database and starts nothing but its receiver.
func newOutlet(ctx context.Context, d database) *outlet {
	GinkgoHelper()
	return newOutletOn(ctx, d, func(*verifyv1.VerificationProject) {})
}

// newOutletOn is newOutlet with changes to the project.
func newOutletOn(ctx context.Context, d database, edit func(*verifyv1.VerificationProject)) *outlet {
	GinkgoHelper()
	o := &outlet{
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
		"uri": d.uri(),
	} {
		o.writeSecret(name, value)
	}
	project := o.shop.project()
	project.TypeMeta = metav1.TypeMeta{APIVersion: verifyv1.GroupVersion.String(), Kind: "VerificationProject"}
	project.Spec.Request.TTL = "1m"
	project.Spec.Storage = inDatabase()
	edit(project)
	content, err := yaml.Marshal(project)
	Expect(err).NotTo(HaveOccurred())
	dir := GinkgoT().TempDir()
	writeFile(dir, "project.yaml", string(content))
	o.project = filepath.Join(dir, "project.yaml")
	o.flags = append([]string{"--claim-lease=5s"}, leaseFlags...)
	return o
}

func inDatabase() verifyv1.Storage {
	return verifyv1.Storage{
		Type: verifyv1.StoragePostgreSQL, PostgreSQL: &verifyv1.PostgreSQL{URISecretRef: verifyv1.URISecretRef{Name: "shop", Key: "uri"}},
	}
}

// startOne starts a replica and does not wait for it.
func (o *outlet) startOne() *replica {
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

// start starts replicas and returns when they are ready.
func (o *outlet) start(ctx context.Context, n int) {
	GinkgoHelper()
	for range n {
		o.startOne()
	}
	for _, r := range o.replicas {
		Eventually(r.ready).WithContext(ctx).WithArguments(ctx).WithTimeout(patience).Should(BeTrue(), r.printed)
	}
}

// begun is a verification that was started.
type begun struct{ id, number, text string }

// begin starts a verification through a replica. Its status is what came back; 0 if nothing did.
func (o *outlet) begin(ctx context.Context, through *replica, number, idempotencyKey string) (begun, int, http.Header) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+through.api+"/api/verify/init",
		strings.NewReader(fmt.Sprintf(`{"phoneNumber": %q, "method": "WHATSAPP"}`, number)))
	if err != nil {
		panic(err) // it is made of constants
	}
	request.Header.Set("Authorization", "Bearer "+o.key)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", idempotencyKey)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return begun{}, 0, nil
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct {
		RequestID    string `json:"requestId"`
		ExpectedText string `json:"expectedText"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return begun{}, 0, nil
	}
	return begun{answer.RequestID, number, answer.ExpectedText}, response.StatusCode, response.Header
}

// begins is begin for what has to succeed. What the store had no time for is asked again with the same key, as clients do.
func (o *outlet) begins(ctx context.Context, through *replica, number, idempotencyKey string) begun {
	GinkgoHelper()
	var b begun
	Eventually(func() (status int) {
		b, status, _ = o.begin(ctx, through, number, idempotencyKey)
		return status
	}).WithContext(ctx).WithTimeout(patience).ShouldNot(Equal(http.StatusServiceUnavailable))
	Expect(b.id).NotTo(BeEmpty(), "it is answered 200")
	return b
}

// proves is prove for what has to succeed, sent again as the platform does.
func (o *outlet) proves(ctx context.Context, through *replica, b begun) {
	GinkgoHelper()
	var status int
	Eventually(func() int {
		status = o.prove(ctx, through, b)
		return status
	}).WithContext(ctx).WithTimeout(patience).ShouldNot(Equal(http.StatusServiceUnavailable))
	Expect(status).To(Equal(http.StatusOK))
}

// prove has the end user send the text, as Meta would tell it, and returns the answer's status; 0 if none came.
func (o *outlet) prove(ctx context.Context, through *replica, b begun) int {
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
		panic(err) // it is made of strings
	}
	mac := hmac.New(sha256.New, []byte(appSecret))
	mac.Write(body)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+through.api+"/hooks/whatsapp", strings.NewReader(string(body)))
	if err != nil {
		panic(err) // it is made of constants
	}
	request.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// query reads one row.
func (d database) query(ctx context.Context, statement string, into ...any) error {
	conn, err := pgx.Connect(ctx, d.uri())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	return conn.QueryRow(ctx, statement).Scan(into...)
}

// count returns what a count gives; -1 while the database does not answer.
func (o *outlet) count(ctx context.Context, statement string) int {
	var n int
	if err := o.database.query(ctx, statement, &n); err != nil {
		return -1
	}
	return n
}

const undeliveredEvents = `SELECT count(*) FROM phoneproof_requests WHERE phase = 'VERIFIED' AND delivered_at IS NULL`

var _ = Describe("A project file with a database", func() {
	It("is served by several replicas, and by one whose database went away and came back", func(ctx SpecContext) {
		o := newOutlet(ctx, startDatabase(ctx, pgserver.Options{}))
		o.start(ctx, 2)
		one, other := o.replicas[0], o.replicas[1]
		b := o.begins(ctx, one, "+4915112345001", "first")
		o.proves(ctx, other, b)
		Eventually(o.receiver.deliveries).WithContext(ctx).WithTimeout(patience).Should(HaveLen(1))
		Eventually(func() bool { return one.leads() != other.leads() }).WithContext(ctx).WithTimeout(patience).
			Should(BeTrue(), "one of them speaks to the messengers")

		By("killing the database")
		Expect(o.database.server.Crash()).To(Succeed())
		down := func() {
			began := time.Now()
			_, status, header := o.begin(ctx, one, "+4915112345002", "second")
			Expect(status).To(Equal(http.StatusServiceUnavailable))
			Expect(header.Get("Retry-After")).NotTo(BeEmpty())
			Expect(time.Since(began)).To(BeNumerically("<", 15*time.Second), "storeTimeout is far less")
			Eventually(func() int { return one.probe(ctx, "/readyz") }).WithContext(ctx).WithTimeout(patience).Should(Equal(http.StatusServiceUnavailable))
			Expect(one.probe(ctx, "/livez")).To(Equal(http.StatusOK))
			Expect(o.prove(ctx, one, b)).To(Equal(http.StatusServiceUnavailable), "the platform is to send it again")
		}
		down()
		Expect(o.database.server.Up(ctx)).To(Succeed())
		back := func(key string) {
			Eventually(one.ready).WithContext(ctx).WithArguments(ctx).WithTimeout(patience).Should(BeTrue())
			o.proves(ctx, one, o.begins(ctx, one, "+4915112345002", key))
		}
		back("second")
		Eventually(o.receiver.deliveries).WithContext(ctx).WithTimeout(patience).Should(HaveLen(2))

		By("stopping every process of the database where it is")
		thaw, err := o.database.server.Freeze()
		Expect(err).NotTo(HaveOccurred())
		down()
		Expect(thaw()).To(Succeed())
		back("third")
		Eventually(o.receiver.deliveries).WithContext(ctx).WithTimeout(patience).Should(HaveLen(3))
		Expect(one.running() && other.running()).To(BeTrue())
		o.receiver.byRequest(webhookSecret)
	}, SpecTimeout(4*time.Minute))

	It("moves to another database when its URI does, without a restart", func(ctx SpecContext) {
		o, second := newOutlet(ctx, newDatabase(ctx)), newDatabase(ctx)
		o.start(ctx, 1)
		o.begins(ctx, o.replicas[0], "+4915112345001", "first")

		By("naming a database that is not there")
		o.writeSecret("uri", o.database.server.URI("nowhere"))
		Eventually(o.replicas[0].printed).WithContext(ctx).WithTimeout(patience).Should(ContainSubstring("does not exist"))
		o.begins(ctx, o.replicas[0], "+4915112345002", "second") // what works is kept

		o.writeSecret("uri", second.uri())
		n := 2
		Eventually(func() int {
			n++
			began := time.Now()
			_, status, _ := o.begin(ctx, o.replicas[0], fmt.Sprintf("+49151123450%02d", n%100), strconv.Itoa(n))
			if time.Since(began) < time.Second { // else the store had no time, on a machine that is busy
				Expect(status).To(Equal(http.StatusOK), "none is refused meanwhile")
			}
			moved := 0
			if err := second.query(ctx, "SELECT count(*) FROM phoneproof_requests", &moved); err != nil {
				return 0 // its tables are being made
			}
			return moved
		}).WithContext(ctx).WithTimeout(patience).Should(BeNumerically(">", 0))
		Expect(o.count(ctx, "SELECT count(*) FROM phoneproof_requests")).To(BeNumerically(">=", 2))
	}, SpecTimeout(2*time.Minute))
})
