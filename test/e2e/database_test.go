//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/pgserver"
)

const (
	bakeryNamespace = "bakery"
	bakeryNumber    = "4915112345671"

	databaseUser   = "bakery"
	firstDatabase  = "first"
	secondDatabase = "second"
	// The password is wrong at first.
	databasePassword = "e2e-database-password"
)

var (
	// theBakery is the project that stores its requests in PostgreSQL; nil if PostgreSQL is not installed.
	theBakery   *shop
	theDatabase *database
)

// database is a PostgreSQL on this machine that pods can reach.
type database struct {
	*pgserver.Server

	host string
}

func startDatabase(ctx context.Context) *database {
	GinkgoHelper()
	host, networks := findReachable(ctx)
	o := pgserver.Options{Output: GinkgoWriter, Settings: map[string]string{
		"listen_addresses": "'127.0.0.1," + host + "'",
		"fsync":            "off", // it ends with the tests
	}}
	for _, network := range networks {
		o.Access = append(o.Access, fmt.Sprintf("host all %s %s scram-sha-256", databaseUser, network))
	}
	server, err := pgserver.Start(ctx, o)
	if errors.Is(err, pgserver.ErrNotInstalled) {
		Skip("NOT PROVEN: " + err.Error())
	}
	Expect(err).NotTo(HaveOccurred())
	d := &database{Server: server, host: host}
	Expect(d.Exec(ctx, "postgres", "CREATE ROLE "+databaseUser+" LOGIN PASSWORD 'another one'")).To(Succeed())
	for _, name := range []string{firstDatabase, secondDatabase} {
		Expect(d.Exec(ctx, "postgres", "CREATE DATABASE "+name+" OWNER "+databaseUser)).To(Succeed())
	}
	return d
}

// findReachable returns the address of this machine that pods can reach, and the networks of their connections: their own,
// and the node's if it masquerades them.
func findReachable(ctx context.Context) (host string, networks []netip.Prefix) {
	GinkgoHelper()
	var nodes corev1.NodeList
	Expect(kube.List(ctx, &nodes)).To(Succeed())
	var pods corev1.PodList
	Expect(kube.List(ctx, &pods, client.InNamespace(shopNamespace))).To(Succeed())
	for _, pod := range pods.Items {
		if ip, err := netip.ParseAddr(pod.Status.PodIP); err == nil {
			networks = append(networks, netip.PrefixFrom(ip, 24).Masked())
			break
		}
	}
	Expect(networks).NotTo(BeEmpty(), "no pod has an address")
	for _, address := range nodes.Items[0].Status.Addresses {
		if ip, err := netip.ParseAddr(address.Address); err == nil && address.Type == corev1.NodeInternalIP {
			networks = append(networks, netip.PrefixFrom(ip, ip.BitLen()))
			// Nothing is sent: the kernel only chooses the local address for that peer.
			conn, err := new(net.Dialer).DialContext(ctx, "udp", netip.AddrPortFrom(ip, 9).String())
			Expect(err).NotTo(HaveOccurred())
			defer func() { _ = conn.Close() }()
			host, _, err = net.SplitHostPort(conn.LocalAddr().String())
			Expect(err).NotTo(HaveOccurred())
		}
	}
	Expect(host).NotTo(BeEmpty(), "the node has no address")
	return host, networks
}

// podURI returns the URI of a database for pods.
func (d *database) podURI(name string) string {
	return (&url.URL{
		Scheme: "postgresql", User: url.UserPassword(databaseUser, databasePassword),
		Host: net.JoinHostPort(d.host, strconv.Itoa(d.Port)), Path: name, RawQuery: "sslmode=disable",
	}).String()
}

// queryCount returns the result of a counting query.
func (d *database) queryCount(ctx context.Context, name, query string, args ...any) (n int, err error) {
	conn, err := pgx.Connect(ctx, d.URI(name))
	if err != nil {
		return 0, err
	}
	err = conn.QueryRow(ctx, query, args...).Scan(&n)
	return n, errors.Join(err, conn.Close(ctx))
}

// countConnections returns the number of the pods' connections to a database.
func (d *database) countConnections(ctx context.Context, name string) (int, error) {
	return d.queryCount(ctx, "postgres", `SELECT count(*) FROM pg_stat_activity WHERE usename = $1 AND datname = $2`, databaseUser, name)
}

// eventuallyStorage waits until the project's condition StorageReady has this status, reason and text.
func eventuallyStorage(ctx context.Context, status metav1.ConditionStatus, reason, words string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		p, err := readProject(ctx, bakeryNamespace)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(p.Status.Conditions).To(ContainElement(And(HaveField("Type", verifyv1.ConditionStorageReady),
			HaveField("Status", status), HaveField("Reason", reason), HaveField("Message", ContainSubstring(words)))))
	}).WithContext(ctx).Should(Succeed())
}

func noRequestObjects(ctx context.Context) {
	GinkgoHelper()
	Expect(runKubectl(ctx, "--namespace "+bakeryNamespace+" get verificationrequests --output=name")).To(BeEmpty())
}

func databaseSpecs() {
	AfterAll(func() {
		if theDatabase != nil {
			Expect(theDatabase.Stop()).To(Succeed())
		}
	})

	It("reports why a database refuses it, and serves from three replicas as soon as it is accepted", func(ctx SpecContext) {
		theDatabase = startDatabase(ctx)
		applyFile(ctx, "bakery.yaml", map[string]string{
			"API_KEY": firstAPIKey, "WEBHOOK_SECRET": firstSecret, "NUMBER": bakeryNumber, "URI": theDatabase.podURI(firstDatabase),
		})
		eventuallyStorage(ctx, metav1.ConditionFalse, verifyv1.ReasonStorageRejected, "password authentication failed")
		Expect(theDatabase.Exec(ctx, "postgres", "ALTER ROLE "+databaseUser+" PASSWORD '"+databasePassword+"'")).To(Succeed())
		eventuallyStorage(ctx, metav1.ConditionTrue, verifyv1.ReasonStorageReachable, "can be stored")
		eventuallyReady(ctx, bakeryNamespace)
		theBakery = newShop(ctx, bakeryNamespace)
		theBakery.eventuallyServed(ctx)
		Expect(theBakery.listPods(ctx)).To(HaveLen(3))
		for _, method := range []string{"WHATSAPP", "TELEGRAM"} {
			theBakery.verifyNumber(ctx, method)
		}
		noRequestObjects(ctx)
	})
}

func bakeryIsOpen() {
	GinkgoHelper()
	if theDatabase == nil {
		Skip("NOT PROVEN: there is no PostgreSQL")
	}
	Expect(theBakery).NotTo(BeNil(), "the previous spec did not make it serve")
}

// relocation is a project's move from one database to another.
type relocation struct {
	before  []string
	pending request
	load    *clientLoad
}

// startRelocation changes the bakery's Secrets to another database; the kubelet updates the pods' files later.
func startRelocation(ctx context.Context, webhookSecret string) *relocation {
	GinkgoHelper()
	if theBakery == nil {
		return nil // an earlier spec reports why
	}
	r := &relocation{before: containerIDs(ctx, theBakery), pending: theBakery.initRequest(ctx, "WHATSAPP"), load: theBakery.startLoad(ctx)}
	for _, patch := range [][2]string{
		{"shop", fmt.Sprintf(`{"stringData":{"webhook-secret":%q}}`, webhookSecret)},
		{"bakery-db-app", fmt.Sprintf(`{"stringData":{"uri":%q}}`, theDatabase.podURI(secondDatabase))},
	} {
		runKubectl(ctx, "--namespace "+bakeryNamespace+" patch secret/"+patch[0]+" --type=merge --patch", patch[1])
	}
	return r
}

// awaitArrival waits until every replica uses the new database, and checks the results.
func (r *relocation) awaitArrival(ctx context.Context) {
	GinkgoHelper()
	if r == nil {
		return
	}
	Eventually(theDatabase.countConnections).WithContext(ctx).WithArguments(firstDatabase).WithTimeout(5 * time.Minute).Should(BeZero())
	for _, failure := range r.load.stop() {
		// A replica with one database answered init, and a replica with the other one answered status.
		Expect(failure).To(ContainSubstring(": 404 "), "the only failure that a client may see")
	}
	Eventually(theBakery.readStatus).WithContext(ctx).WithArguments(r.pending.ID).Should(HavePrefix("404"), "requests in the previous database stay there")
	Expect(theDatabase.queryCount(ctx, firstDatabase, "SELECT count(*) FROM phoneproof_requests WHERE id = $1", r.pending.ID)).To(Equal(1))

	load := theBakery.startLoad(ctx)
	for _, method := range []string{"WHATSAPP", "TELEGRAM"} {
		theBakery.verifyNumber(ctx, method)
	}
	load.awaitMore(ctx)
	Expect(load.stop()).To(BeEmpty())
	Expect(containerIDs(ctx, theBakery)).To(ConsistOf(r.before), "no pod restarts")
	eventuallyReady(ctx, bakeryNamespace)
	noRequestObjects(ctx)
}
