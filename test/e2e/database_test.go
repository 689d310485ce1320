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
	// The password is wrong on the first day.
	databasePassword = "e2e-database-password"
)

var (
	// theBakery is the project that keeps its requests in PostgreSQL; nil where that is not installed.
	theBakery   *shop
	theDatabase *database
)

// database is a PostgreSQL on this machine that pods reach.
type database struct {
	*pgserver.Server

	host string
}

func startDatabase(ctx context.Context) *database {
	GinkgoHelper()
	host, networks := reachable(ctx)
	o := pgserver.Options{Output: GinkgoWriter, Settings: map[string]string{
		"listen_addresses": "'127.0.0.1," + host + "'",
		// The server crashes here and the machine does not: what the kernel was given stays. Else the recovery would first
		// flush every file of the data, which takes a busy disk minutes.
		"fsync": "off",
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

// reachable returns the address of this machine that pods reach, and the networks that they come from: their own, and
// their node where that stands for them.
func reachable(ctx context.Context) (host string, networks []netip.Prefix) {
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
	Expect(networks).NotTo(BeEmpty(), "some pod has an address")
	for _, address := range nodes.Items[0].Status.Addresses {
		if ip, err := netip.ParseAddr(address.Address); err == nil && address.Type == corev1.NodeInternalIP {
			networks = append(networks, netip.PrefixFrom(ip, ip.BitLen()))
			// Nothing is sent: this asks which of our addresses that one is reached from.
			conn, err := new(net.Dialer).DialContext(ctx, "udp", netip.AddrPortFrom(ip, 9).String())
			Expect(err).NotTo(HaveOccurred())
			defer func() { _ = conn.Close() }()
			host, _, err = net.SplitHostPort(conn.LocalAddr().String())
			Expect(err).NotTo(HaveOccurred())
		}
	}
	Expect(host).NotTo(BeEmpty(), "the node has an address")
	return host, networks
}

// podURI returns how pods reach one of the databases.
func (d *database) podURI(name string) string {
	return (&url.URL{
		Scheme: "postgresql", User: url.UserPassword(databaseUser, databasePassword),
		Host: net.JoinHostPort(d.host, strconv.Itoa(d.Port)), Path: name, RawQuery: "sslmode=disable",
	}).String()
}

// count returns what a query counts.
func (d *database) count(ctx context.Context, name, query string, args ...any) (n int, err error) {
	conn, err := pgx.Connect(ctx, d.URI(name))
	if err != nil {
		return 0, err
	}
	err = conn.QueryRow(ctx, query, args...).Scan(&n)
	return n, errors.Join(err, conn.Close(ctx))
}

// connections returns how many the pods have to a database.
func (d *database) connections(ctx context.Context, name string) (int, error) {
	return d.count(ctx, "postgres", `SELECT count(*) FROM pg_stat_activity WHERE usename = $1 AND datname = $2`, databaseUser, name)
}

// eventuallyStorage waits until the project says of its store what it should.
func eventuallyStorage(ctx context.Context, status metav1.ConditionStatus, reason, words string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		p, err := project(ctx, bakeryNamespace)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(p.Status.Conditions).To(ContainElement(And(HaveField("Type", verifyv1.ConditionStorageReady),
			HaveField("Status", status), HaveField("Reason", reason), HaveField("Message", ContainSubstring(words)))))
	}).WithContext(ctx).Should(Succeed())
}

func noRequestObjects(ctx context.Context) {
	GinkgoHelper()
	Expect(kubectl(ctx, "--namespace "+bakeryNamespace+" get verificationrequests --output=name")).To(BeEmpty())
}

func databaseSpecs() {
	AfterAll(func() {
		if theDatabase != nil {
			Expect(theDatabase.Stop()).To(Succeed())
		}
	})

	It("says why a database refuses it, and serves from three replicas as soon as it does not", func(ctx SpecContext) {
		theDatabase = startDatabase(ctx)
		apply(ctx, "bakery.yaml", map[string]string{
			"API_KEY": firstAPIKey, "WEBHOOK_SECRET": firstSecret, "NUMBER": bakeryNumber, "URI": theDatabase.podURI(firstDatabase),
		})
		eventuallyStorage(ctx, metav1.ConditionFalse, verifyv1.ReasonStorageRejected, "password authentication failed")
		Expect(theDatabase.Exec(ctx, "postgres", "ALTER ROLE "+databaseUser+" PASSWORD '"+databasePassword+"'")).To(Succeed())
		eventuallyStorage(ctx, metav1.ConditionTrue, verifyv1.ReasonStorageReachable, "can be stored")
		eventuallyReady(ctx, bakeryNamespace)
		theBakery = newShop(ctx, bakeryNamespace)
		Expect(theBakery.pods(ctx)).To(HaveLen(3))
		for _, method := range []string{"WHATSAPP", "TELEGRAM"} {
			theBakery.verify(ctx, method)
		}
		noRequestObjects(ctx)
	})

	It("loses nothing that it acknowledged when replicas are killed and the database crashes", func(ctx SpecContext) {
		bakeryIsOpen()
		p := theBakery.prove(ctx)
		p.keepsOn(ctx)

		leader := leading(ctx, bakeryNamespace, "phoneproof-shop")
		kubectl(ctx, "--namespace "+bakeryNamespace+" delete pod --grace-period=0 --force "+leader)
		p.keepsOn(ctx)
		killAnother(ctx, leader)
		Expect(theDatabase.Crash()).To(Succeed())
		crashed := time.Now()
		eventuallyStorage(ctx, metav1.ConditionFalse, verifyv1.ReasonStorageUnreachable, "the database refuses connections")
		AddReportEntry("a database that is gone was told of after", time.Since(crashed).Round(time.Second).String())
		Expect(theDatabase.Up(ctx)).To(Succeed())
		p.keepsOn(ctx)
		Expect(theDatabase.Crash()).To(Succeed())
		Expect(theDatabase.Up(ctx)).To(Succeed())
		p.keepsOn(ctx)

		p.end()
		AddReportEntry("replicas killed and a database crashed twice", p.judge(ctx))
		eventuallyStorage(ctx, metav1.ConditionTrue, verifyv1.ReasonStorageReachable, "can be stored")
		eventuallyReady(ctx, bakeryNamespace)
		noRequestObjects(ctx)
	})
}

func bakeryIsOpen() {
	GinkgoHelper()
	if theDatabase == nil {
		Skip("NOT PROVEN: there is no PostgreSQL")
	}
	Expect(theBakery).NotTo(BeNil(), "the spec before did not get it to serve")
}

// killAnother kills the process of a replica that runs beside one, as a machine does that runs out of memory.
func killAnother(ctx context.Context, than string) {
	GinkgoHelper()
	for _, pod := range theBakery.pods(ctx) {
		if pod.Name != than && pod.DeletionTimestamp == nil && len(pod.Status.ContainerStatuses) > 0 &&
			pod.Status.ContainerStatuses[0].State.Running != nil { // the one in the place of the former may not have begun
			Expect(kill(pod.Status.ContainerStatuses[0].ContainerID)).To(Succeed())
			return
		}
	}
	Fail("no other replica runs")
}

// relocation is a project's way from one database to another.
type relocation struct {
	before  []string
	pending request
	load    *load
}

// relocate has the Secrets of the bakery name another database; the kubelet brings them to the pods in its own time.
func relocate(ctx context.Context, webhookSecret string) *relocation {
	GinkgoHelper()
	if theBakery == nil {
		return nil // a spec before says why
	}
	r := &relocation{before: lives(ctx, theBakery), pending: theBakery.init(ctx, "WHATSAPP"), load: theBakery.load(ctx)}
	for _, patch := range [][2]string{
		{"shop", fmt.Sprintf(`{"stringData":{"webhook-secret":%q}}`, webhookSecret)},
		{"bakery-db-app", fmt.Sprintf(`{"stringData":{"uri":%q}}`, theDatabase.podURI(secondDatabase))},
	} {
		kubectl(ctx, "--namespace "+bakeryNamespace+" patch secret/"+patch[0]+" --type=merge --patch", patch[1])
	}
	return r
}

// arrives waits until every replica works with the new database, and looks what became of whom.
func (r *relocation) arrives(ctx context.Context) {
	GinkgoHelper()
	if r == nil {
		return
	}
	Eventually(theDatabase.connections).WithContext(ctx).WithArguments(firstDatabase).WithTimeout(5 * time.Minute).Should(BeZero())
	for _, failure := range r.load.end() {
		// Init was answered by a replica with the one database, status by a replica with the other.
		Expect(failure).To(ContainSubstring(": 404 "), "all that a client may see")
	}
	Eventually(theBakery.status).WithContext(ctx).WithArguments(r.pending.ID).Should(HavePrefix("404"), "what is in the former database stays there")
	Expect(theDatabase.count(ctx, firstDatabase, "SELECT count(*) FROM phoneproof_requests WHERE id = $1", r.pending.ID)).To(Equal(1))

	load := theBakery.load(ctx)
	for _, method := range []string{"WHATSAPP", "TELEGRAM"} {
		theBakery.verify(ctx, method)
	}
	load.keepsOn(ctx)
	Expect(load.end()).To(BeEmpty())
	Expect(lives(ctx, theBakery)).To(ConsistOf(r.before), "no pod restarts for it")
	eventuallyReady(ctx, bakeryNamespace)
	noRequestObjects(ctx)
}
