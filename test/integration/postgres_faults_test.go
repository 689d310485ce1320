package integration_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/pgserver"
)

// attempt is one init of a rush.
type attempt struct {
	begun

	status     int
	retryAfter string
	asked      time.Time
	took       time.Duration
}

// rush are clients that start verifications at a replica, each one after the other, until they are stopped.
type rush struct {
	stopped chan struct{}
	all     sync.WaitGroup

	mu       sync.Mutex
	attempts []attempt
}

func (o *outlet) rush(ctx context.Context, clients int, at *replica) *rush {
	c := &rush{stopped: make(chan struct{})}
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
				a.begun, a.status, header = o.begin(ctx, at, fmt.Sprintf("+49152%08d", n), fmt.Sprint("rush-", n))
				a.took, a.retryAfter = time.Since(a.asked), header.Get("Retry-After")
				c.mu.Lock()
				c.attempts = append(c.attempts, a)
				c.mu.Unlock()
			}
		})
	}
	return c
}

// stop ends the rush and returns what it saw.
func (c *rush) stop() []attempt {
	close(c.stopped)
	c.all.Wait()
	return c.attempts
}

// acked counts the inits that were acknowledged so far.
func (c *rush) acked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, a := range c.attempts {
		if a.status == http.StatusOK {
			n++
		}
	}
	return n
}

var _ = Describe("A database that stands still under load", func() {
	It("is a crowd of quick refusals, a bounded line, and nothing acknowledged that is not stored", func(ctx SpecContext) {
		// As many clients as one slow processor serves in time, and many more than there are connections.
		const clients, frozen = 64, 12 * time.Second
		o := newOutlet(ctx, startDatabase(ctx, pgserver.Options{}))
		o.start(ctx, 1)
		r := o.replicas[0]
		all := o.rush(ctx, clients, r)
		Eventually(all.acked).WithContext(ctx).WithTimeout(patience).Should(BeNumerically(">", 2*clients))
		thaw, err := o.database.server.Freeze()
		Expect(err).NotTo(HaveOccurred())
		still := time.Now()
		DeferCleanup(thaw)
		Eventually(func() int { return r.probe(ctx, "/readyz") }).WithContext(ctx).WithTimeout(patience).Should(Equal(http.StatusServiceUnavailable))
		var routines, connections float64
		for next := time.Tick(100 * time.Millisecond); time.Since(still) < frozen; <-next {
			Expect(r.probe(ctx, "/livez")).To(Equal(http.StatusOK))
			Expect(r.probe(ctx, "/readyz")).To(Equal(http.StatusServiceUnavailable))
			routines = max(routines, r.metric(ctx, "go_goroutines", nil))
			connections = max(connections, r.metric(ctx, "phoneproof_postgresql_connections", nil))
		}
		moves := time.Now()
		Expect(thaw()).To(Succeed())
		Eventually(r.ready).WithContext(ctx).WithArguments(ctx).WithTimeout(patience).Should(BeTrue())
		before := all.acked()
		Eventually(all.acked).WithContext(ctx).WithTimeout(patience).Should(BeNumerically(">", before+clients), "it is as it was")
		refused, slowest := 0, time.Duration(0)
		attempts := all.stop()
		o.keeps(ctx, attempts)
		for _, a := range attempts {
			if a.status == http.StatusOK {
				Expect(a.asked.After(still.Add(time.Second)) && a.asked.Add(a.took).Before(moves)).To(BeFalse(), "acknowledged by nobody")
				continue
			}
			Expect(a.status).To(Equal(http.StatusServiceUnavailable), "after %s", a.took)
			Expect(a.retryAfter).NotTo(BeEmpty())
			refused, slowest = refused+1, max(slowest, a.took)
		}
		Expect(refused).To(BeNumerically(">", 2*clients), "each client was refused again and again, and waited for none of it")
		Expect(connections).To(BeNumerically("<=", 16))
		Expect(routines).To(BeNumerically("<", 10*clients))
		AddReportEntry("frozen", fmt.Sprintf("%d refusals, the slowest after %s; at most %.0f goroutines and %.0f connections",
			refused, slowest.Round(time.Millisecond), routines, connections))
	}, SpecTimeout(3*time.Minute))
})

var _ = Describe("Strangers who ask for readiness while the database stands still", func() {
	// askInALoop asks once a second, on a connection of its own each time, from some time of the second on: the probes come
	// from the same process, and would always fall into a burst that they have to wait behind.
	askInALoop := func(ctx context.Context, address string, from time.Duration) {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		select {
		case <-ctx.Done():
		case <-time.After(from):
		}
		for next := time.Tick(time.Second); ctx.Err() == nil; <-next {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
			Expect(err).NotTo(HaveOccurred())
			if response, err := client.Do(request); err == nil { // it may have made room for another
				_ = response.Body.Close()
			}
		}
	}

	It("do not keep the kubelet out", func(ctx SpecContext) {
		const strangers = 400
		GinkgoT().Setenv("GOMEMLIMIT", "230MiB") // room for 150 connections at the port
		o := newOutlet(ctx, startDatabase(ctx, pgserver.Options{}))
		o.start(ctx, 1)
		r := o.replicas[0]
		thaw, err := o.database.server.Freeze()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(thaw)
		crowded, disperse := context.WithCancel(ctx)
		var crowd sync.WaitGroup
		DeferCleanup(func() {
			disperse()
			crowd.Wait()
		})
		for n := range strangers {
			crowd.Go(func() {
				defer GinkgoRecover()
				askInALoop(crowded, r.health, time.Duration(n)*time.Second/strangers)
			})
		}
		Eventually(func() int { return r.probe(ctx, "/readyz") }).WithContext(ctx).WithTimeout(patience).Should(Equal(http.StatusServiceUnavailable))
		for range 50 {
			isAnswered("liveness", func() int { return r.probe(ctx, "/livez") })
		}
		Expect(thaw()).To(Succeed())
		Eventually(r.ready).WithContext(ctx).WithArguments(ctx).WithTimeout(patience).Should(BeTrue())
		for range 10 {
			isAnswered("readiness", func() int { return r.probe(ctx, "/readyz") })
		}
	}, SpecTimeout(3*time.Minute))
})

// keeps checks that all that was acknowledged is stored, and returns how much that is.
func (o *outlet) keeps(ctx context.Context, attempts []attempt) (acked int) {
	GinkgoHelper()
	var stored []string
	Expect(o.database.query(ctx, "SELECT coalesce(array_agg(id), '{}') FROM phoneproof_requests", &stored)).To(Succeed())
	known := map[string]bool{}
	for _, id := range stored {
		known[id] = true
	}
	for _, a := range attempts {
		if a.status != http.StatusOK {
			continue
		}
		if acked++; !known[a.id] { // a matcher would print all of them
			Fail("acknowledged, and not stored: " + a.id)
		}
	}
	return acked
}

// smallDisk mounts a file system of that size in memory for the user who runs PostgreSQL, until the spec ends.
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
	Expect(os.Chmod(dir, 0o755)).To(Succeed(), "PostgreSQL runs as somebody else")
	options := fmt.Sprintf("size=%s,mode=700,uid=%s,gid=%s", size, owner.Uid, owner.Gid)
	if out, err := exec.CommandContext(ctx, "mount", "-t", "tmpfs", "-o", options, "tmpfs", dir).CombinedOutput(); err != nil {
		Skip("a disk of its own needs root: " + string(out))
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
	It("refuses what is new, answers what is known, repeats no event, and goes on when there is room", func(ctx SpecContext) {
		o := newOutletOn(ctx, startDatabase(ctx, pgserver.Options{}), func(p *verifyv1.VerificationProject) {
			p.Spec.Request.TTL = "10m" // what begins before the disk is full is proven when there is room
		})
		disk, grow := smallDisk(ctx, "1m")
		Expect(o.database.server.Exec(ctx, "postgres", "CREATE TABLESPACE small LOCATION '"+disk+"'")).To(Succeed())
		o.writeSecret("uri", o.database.uri()+"&default_tablespace=small")
		o.start(ctx, 1)
		r := o.replicas[0]
		var early []begun
		for n := range 20 {
			early = append(early, o.begins(ctx, r, fmt.Sprintf("+491511234%04d", n), fmt.Sprint("early-", n)))
		}
		all := o.rush(ctx, 16, r)
		Eventually(r.metric).WithContext(ctx).WithArguments(ctx, "phoneproof_http_inits_total", map[string]string{"result": "store_unavailable"}).
			WithTimeout(time.Minute).Should(BeNumerically(">", 100), "the disk is full")
		attempts := all.stop()
		By("living with it")
		late := 0
		for range 5 {
			// Pages that updates have left have room for a few rows more.
			Eventually(func(g Gomega) {
				late++
				_, status, header := o.begin(ctx, r, fmt.Sprintf("+491521234%04d", late), fmt.Sprint("late-", late))
				g.Expect(status).To(Equal(http.StatusServiceUnavailable))
				g.Expect(header.Get("Retry-After")).NotTo(BeEmpty())
			}).WithContext(ctx).WithTimeout(patience).Should(Succeed())
		}
		Eventually(r.status).WithContext(ctx).WithArguments(o.key, early[0].id).WithTimeout(patience).Should(Equal("PENDING"))
		Expect(r.probe(ctx, "/livez")).To(Equal(http.StatusOK))
		var proven, refused []begun
		for _, b := range early {
			if status := o.prove(ctx, r, b); status == http.StatusOK {
				proven = append(proven, b) // there is room on its page
			} else {
				Expect(status).To(Equal(http.StatusServiceUnavailable))
				refused = append(refused, b)
			}
		}
		waited := time.Now()
		Eventually(time.Since).WithContext(ctx).WithArguments(waited).WithTimeout(time.Minute).
			Should(BeNumerically(">", 12*time.Second), "the lease of a claim comes back twice in it")
		meanwhile := o.receiver.byRequest(webhookSecret)
		for _, b := range refused {
			Expect(meanwhile).NotTo(HaveKey(b.id), "what could not be stored is not told")
		}

		By("making room")
		grow("64m")
		for _, b := range early {
			Eventually(o.prove).WithContext(ctx).WithArguments(ctx, r, b).WithTimeout(patience).Should(Equal(http.StatusOK))
		}
		Eventually(o.count).WithContext(ctx).WithArguments(ctx, undeliveredEvents).WithTimeout(patience).Should(BeZero())
		got := o.receiver.byRequest(webhookSecret)
		for _, b := range early {
			var attempts int
			Expect(o.database.query(ctx, "SELECT attempts FROM phoneproof_requests WHERE id = '"+b.id+"'", &attempts)).To(Succeed())
			Expect(got[b.id]).To(HaveLen(attempts), "each event once, and what was sent is recorded")
			Expect(attempts).To(Equal(1))
			Eventually(r.status).WithContext(ctx).WithArguments(o.key, b.id).WithTimeout(patience).Should(Equal("VERIFIED"))
		}
		acked := o.keeps(ctx, attempts)
		o.begins(ctx, r, "+4915112349999", "late")
		AddReportEntry("full", fmt.Sprintf("after %d requests; %d of %d proven meanwhile, %d events sent meanwhile",
			acked, len(proven), len(early), len(meanwhile)))
	}, SpecTimeout(3*time.Minute))
})
