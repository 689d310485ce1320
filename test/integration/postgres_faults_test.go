package integration_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/pgserver"
)

// attempt is one init of an initLoad.
type attempt struct {
	startedRequest

	status     int
	retryAfter string
	asked      time.Time
	took       time.Duration
}

// initLoad is a set of clients that each start one verification after the other at a replica, until it is stopped.
type initLoad struct {
	stopped chan struct{}
	all     sync.WaitGroup

	mu       sync.Mutex
	attempts []attempt
}

func (o *databaseShop) startLoad(ctx context.Context, clients int, at *replica) *initLoad {
	c := &initLoad{stopped: make(chan struct{})}
	var next atomic.Int64
	for range clients {
		c.all.Go(func() {
			for {
				select {
				case <-c.stopped:
					return
				case <-ctx.Done():
					return
				default:
				}
				n := next.Add(1)
				a := attempt{asked: time.Now()}
				var header http.Header
				a.startedRequest, a.status, header = o.tryStart(ctx, at, fmt.Sprintf("+49152%08d", n), fmt.Sprint("rush-", n))
				a.took, a.retryAfter = time.Since(a.asked), header.Get("Retry-After")
				c.mu.Lock()
				c.attempts = append(c.attempts, a)
				c.mu.Unlock()
			}
		})
	}
	return c
}

// stop ends the load and returns its attempts.
func (c *initLoad) stop() []attempt {
	close(c.stopped)
	c.all.Wait()
	return c.attempts
}

// countAcked counts the inits that were acknowledged so far.
func (c *initLoad) countAcked() int { return c.countAnswered(http.StatusOK) }

// countAnswered counts the inits that were answered with a status so far.
func (c *initLoad) countAnswered(status int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, a := range c.attempts {
		if a.status == status {
			n++
		}
	}
	return n
}

var _ = Describe("A database that stands still under load", func() {
	It("causes quick refusals and a bounded queue, and no acknowledgement of what is not stored", func(ctx SpecContext) {
		// As many clients as one slow processor serves in time, and many more than there are database connections.
		const clients, frozen = 64, 12 * time.Second
		o := newDatabaseShop(ctx, startDatabase(ctx, pgserver.Options{}))
		o.start(ctx, 1)
		r := o.replicas[0]
		all := o.startLoad(ctx, clients, r)
		Eventually(all.countAcked).WithContext(ctx).Should(BeNumerically(">", 2*clients))
		thaw, err := o.database.server.Freeze()
		Expect(err).NotTo(HaveOccurred())
		still := time.Now()
		DeferCleanup(thaw)
		Eventually(func() int { return r.probeStatus(ctx, "/readyz") }).WithContext(ctx).Should(Equal(http.StatusServiceUnavailable))
		var routines, connections float64
		early := all.countAnswered(http.StatusServiceUnavailable)
		wasRefused := func() bool { return all.countAnswered(http.StatusServiceUnavailable) > early+2*clients } // each client repeatedly
		for next := time.Tick(100 * time.Millisecond); ctx.Err() == nil && (time.Since(still) < frozen || !wasRefused()); <-next {
			Expect(r.probeStatus(ctx, "/livez")).To(Equal(http.StatusOK))
			Expect(r.probeStatus(ctx, "/readyz")).To(Equal(http.StatusServiceUnavailable))
			routines = max(routines, r.readMetric(ctx, "go_goroutines", nil))
			connections = max(connections, r.readMetric(ctx, "phoneproof_postgresql_connections", nil))
		}
		Expect(wasRefused()).To(BeTrue(), "each client was refused repeatedly")
		moves := time.Now()
		Expect(thaw()).To(Succeed())
		Eventually(r.Ready).WithContext(ctx).WithArguments(ctx).Should(BeTrue())
		before := all.countAcked()
		Eventually(all.countAcked).WithContext(ctx).Should(BeNumerically(">", before+clients), "inits succeed again")
		refused, slowest := 0, time.Duration(0)
		attempts := all.stop()
		o.expectStored(ctx, attempts)
		for _, a := range attempts {
			if a.status == http.StatusOK {
				Expect(a.asked.After(still.Add(time.Second)) && a.asked.Add(a.took).Before(moves)).To(BeFalse(), "acknowledged while the database was frozen")
				continue
			}
			Expect(a.status).To(Equal(http.StatusServiceUnavailable), "after %s", a.took)
			Expect(a.retryAfter).NotTo(BeEmpty())
			refused, slowest = refused+1, max(slowest, a.took)
		}
		Expect(slowest).To(BeNumerically("<", time.Minute), "a refusal takes as long as the store may, and not as long as the freeze")
		Expect(connections).To(BeNumerically("<=", 16))
		Expect(routines).To(BeNumerically("<", 10*clients))
		AddReportEntry("frozen", fmt.Sprintf("%d refusals, the slowest after %s; at most %.0f goroutines and %.0f connections",
			refused, slowest.Round(time.Millisecond), routines, connections))
	}, SpecTimeout(hang))
})

var _ = Describe("Strangers who request readiness while the database is frozen", func() {
	It("do not lock out the kubelet", func(ctx SpecContext) {
		const (
			strangers = 300
			asked     = 60 // more than a probe that waited a second for the database would get through before the end
		)
		GinkgoT().Setenv("GOMEMLIMIT", "230MiB") // allows 150 connections at the port
		o := newDatabaseShop(ctx, startDatabase(ctx, pgserver.Options{}))
		o.start(ctx, 1)
		r := o.replicas[0]
		thaw, err := o.database.server.Freeze()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(thaw)
		Eventually(func() int { return r.probeStatus(ctx, "/readyz") }).WithContext(ctx).Should(Equal(http.StatusServiceUnavailable))
		questions := []byte(strings.Repeat("GET /readyz HTTP/1.1\r\nHost: stranger\r\n\r\n", asked))
		var crowd sync.WaitGroup
		for range strangers {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.Health)
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(conn.Close)
			crowd.Go(func() {
				_, _ = conn.Write(questions)        // it may have been closed in favour of another
				_, _ = conn.Read(make([]byte, 512)) // the first answer, or the end
			})
		}
		crowd.Wait() // all of them have arrived, so what follows does not depend on how fast they do
		for range 50 {
			isAnswered(ctx, "liveness", Equal(http.StatusOK), func() int { return r.probeOnce(ctx, "/livez") })
		}
		Expect(thaw()).To(Succeed())
		Eventually(r.Ready).WithContext(ctx).WithArguments(ctx).Should(BeTrue())
		for range 10 {
			isAnswered(ctx, "readiness", Equal(http.StatusOK), func() int { return r.probeOnce(ctx, "/readyz") })
		}
	}, SpecTimeout(hang))
})

// expectStored checks that all acknowledged requests are stored, and returns their number.
func (o *databaseShop) expectStored(ctx context.Context, attempts []attempt) (acked int) {
	GinkgoHelper()
	var stored []string
	Expect(o.database.queryRow(ctx, "SELECT coalesce(array_agg(id), '{}') FROM phoneproof_requests", &stored)).To(Succeed())
	known := map[string]bool{}
	for _, id := range stored {
		known[id] = true
	}
	for _, a := range attempts {
		if a.status != http.StatusOK {
			continue
		}
		if acked++; !known[a.id] { // a matcher would print all ids
			Fail("acknowledged, but not stored: " + a.id)
		}
	}
	return acked
}

// smallDisk mounts a tmpfs of that size for PostgreSQL's user, until the spec ends.
func smallDisk(ctx context.Context, size string) (dir string, grow func(size string)) {
	GinkgoHelper()
	owner, err := user.Lookup("postgres")
	if err != nil {
		owner, err = user.Lookup("nobody")
	}
	Expect(err).NotTo(HaveOccurred())
	dir, err = os.MkdirTemp("", "phoneproof-disk-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.Remove, dir)
	Expect(os.Chmod(dir, 0o755)).To(Succeed(), "PostgreSQL runs as another user")
	options := fmt.Sprintf("size=%s,mode=700,uid=%s,gid=%s", size, owner.Uid, owner.Gid)
	if out, err := exec.CommandContext(ctx, "mount", "-t", "tmpfs", "-o", options, "tmpfs", dir).CombinedOutput(); err != nil {
		Skip("mounting a tmpfs needs root: " + string(out))
	}
	DeferCleanup(func(ctx SpecContext) {
		Expect(exec.CommandContext(ctx, "umount", "--lazy", dir).Run()).To(Succeed())
	})
	return dir, func(size string) {
		GinkgoHelper()
		Expect(exec.CommandContext(ctx, "mount", "-o", "remount,size="+size, dir).Run()).To(Succeed())
	}
}

var _ = Describe("A database whose disk is full", func() {
	It("refuses new requests, answers for stored ones, repeats no event, and recovers with free space", func(ctx SpecContext) {
		o := newDatabaseShopWith(ctx, startDatabase(ctx, pgserver.Options{}), func(p *verifyv1.VerificationProject) {
			p.Spec.Request.TTL = "10m" // requests from before the disk is full are verified when it has space again
		})
		disk, grow := smallDisk(ctx, "1m")
		Expect(o.database.server.Exec(ctx, "postgres", "CREATE TABLESPACE small LOCATION '"+disk+"'")).To(Succeed())
		o.writeSecret("uri", o.database.connectionURI()+"&default_tablespace=small")
		o.start(ctx, 1)
		r := o.replicas[0]
		var early []startedRequest
		for n := range 20 {
			early = append(early, o.startRequest(ctx, r, fmt.Sprintf("+491511234%04d", n), fmt.Sprint("early-", n)))
		}
		all := o.startLoad(ctx, 16, r)
		Eventually(r.readMetric).WithContext(ctx).WithArguments(ctx, "phoneproof_http_inits_total", map[string]string{"result": "store_unavailable"}).
			Should(BeNumerically(">", 100), "the disk is full")
		attempts := all.stop()
		By("running with a full disk")
		late := 0
		for range 5 {
			// Pages that updates have freed can hold a few more rows.
			Eventually(func(g Gomega) {
				late++
				_, status, header := o.tryStart(ctx, r, fmt.Sprintf("+491521234%04d", late), fmt.Sprint("late-", late))
				g.Expect(status).To(Equal(http.StatusServiceUnavailable))
				g.Expect(header.Get("Retry-After")).NotTo(BeEmpty())
			}).WithContext(ctx).Should(Succeed())
		}
		Eventually(r.readStatus).WithContext(ctx).WithArguments(o.key, early[0].id).Should(Equal("PENDING"))
		Expect(r.probeStatus(ctx, "/livez")).To(Equal(http.StatusOK))
		var proven, refused []startedRequest
		for _, b := range early {
			if status := o.postMessage(ctx, r, b.number, b.text); status == http.StatusOK {
				proven = append(proven, b) // its page has space
			} else {
				Expect(status).To(Equal(http.StatusServiceUnavailable))
				refused = append(refused, b)
			}
		}
		waited := time.Now()
		Eventually(time.Since).WithContext(ctx).WithArguments(waited).
			Should(BeNumerically(">", 2*claimLease+2*time.Second), "the lease of a claim expires twice in that time")
		meanwhile := o.receiver.byRequest(webhookSecret)
		for _, b := range refused {
			// Where only the answer came too late, the verification is stored.
			if r.readStatus(ctx, o.key, b.id) == "PENDING" {
				Expect(meanwhile).NotTo(HaveKey(b.id), "no event of a verification that could not be stored")
			}
		}

		By("growing the disk")
		grow("64m")
		for _, b := range early {
			Eventually(o.postMessage).WithContext(ctx).WithArguments(ctx, r, b.number, b.text).Should(Equal(http.StatusOK))
		}
		Eventually(o.queryCount).WithContext(ctx).WithArguments(ctx, undeliveredEvents).Should(BeZero())
		got := o.receiver.byRequest(webhookSecret)
		for _, b := range early {
			var attempts int
			Expect(o.database.queryRow(ctx, "SELECT attempts FROM phoneproof_requests WHERE id = '"+b.id+"'", &attempts)).To(Succeed())
			Expect(got[b.id]).To(HaveLen(attempts), "each event once, and every attempt is recorded")
			Expect(attempts).To(Equal(1))
			Eventually(r.readStatus).WithContext(ctx).WithArguments(o.key, b.id).Should(Equal("VERIFIED"))
		}
		acked := o.expectStored(ctx, attempts)
		o.startRequest(ctx, r, "+4915112349999", "late")
		AddReportEntry("full", fmt.Sprintf("after %d requests; %d of %d proven meanwhile, %d events sent meanwhile",
			acked, len(proven), len(early), len(meanwhile)))
	}, SpecTimeout(hang))
})
