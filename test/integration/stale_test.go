package integration_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/rest"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/webhook"
)

// Between the last look at a request and its event's first byte lies the receiver's own TLS handshake, as slow as he
// likes. A holder whose lease is no longer firm when it is over must keep the event.
var _ = Describe("A holder whose lease goes stale while receivers shake hands", func() {
	// Firm is over after half a duration, and the term ends with the renew deadline: in between nothing but the question
	// that is asked before the first byte keeps an event back. All of it lies within the 10 s that a handshake may take.
	const duration = 10 * time.Second
	It("sends none of the events when it cannot reach the API server", func(ctx SpecContext) {
		s := newShop(ctx)
		doorkeeper := s.secure(ctx)
		ids := s.verifiedRequests(ctx, webhook.SlowStart)
		s.lease = []string{"--lease-duration=10s", "--lease-renew-deadline=9s", "--lease-retry-period=250ms"}
		way := s.detour()
		holder := s.startOne()
		Eventually(doorkeeper.kept).WithContext(ctx).WithTimeout(30 * time.Second).Should(BeEquivalentTo(len(ids)))
		way.cut()
		cut := time.Now()
		Eventually(time.Since).WithContext(ctx).WithArguments(cut).WithTimeout(time.Minute).Should(BeNumerically(">", duration/2))
		doorkeeper.open()
		inTime := time.Since(cut) < duration*3/4
		AddReportEntry("handshakes went on", time.Since(cut).Round(10*time.Millisecond).String()+" after the way was cut")
		Eventually(holder.leads).WithContext(ctx).WithTimeout(time.Minute).Should(BeFalse())
		Expect(s.receiver.deliveries()).To(BeEmpty(), "an event of a lease that is not firm")
		if inTime { // else the end of the term ended the attempts
			Expect(holder.held(ctx, "lease")).To(BeNumerically(">=", len(ids)), "all were kept back by the lease")
		}

		s.reach(s.config.Host)
		s.start(ctx, 1)
		s.allDelivered(ctx, ids, 1)
		Expect(s.receiver.deliveries()).To(HaveLen(len(ids)))
	}, SpecTimeout(2*time.Minute))

	It("sends none of the events when it was stopped for two lease times", func(ctx SpecContext) {
		const duration = 4 * time.Second // twice that is less than a handshake may take
		s := newShop(ctx)
		s.lease = []string{"--lease-duration=4s", "--lease-renew-deadline=3500ms", "--lease-retry-period=250ms"}
		doorkeeper := s.secure(ctx)
		ids := s.verifiedRequests(ctx, webhook.SlowStart)
		stopped := s.startOne()
		Eventually(doorkeeper.kept).WithContext(ctx).WithTimeout(30 * time.Second).Should(BeEquivalentTo(len(ids)))
		stopped.freeze()
		since := time.Now()
		doorkeeper.open() // the receiver's half of the handshakes waits for the holder to run again
		s.start(ctx, 1)
		s.allDelivered(ctx, ids, 1)
		states := s.objects(ctx)
		Eventually(time.Since).WithContext(ctx).WithArguments(since).WithTimeout(time.Minute).Should(BeNumerically(">", 2*duration))
		Expect(stopped.leads()).To(BeTrue(), "it does not know yet")

		stopped.thaw()
		Eventually(stopped.leads).WithContext(ctx).WithTimeout(30 * time.Second).Should(BeFalse())
		Consistently(s.receiver.deliveries).WithContext(ctx).WithTimeout(2*time.Second).Should(HaveLen(len(ids)), "each event once")
		for id, o := range s.objects(ctx) {
			Expect(o.ResourceVersion).To(Equal(states[id].ResourceVersion), "nothing was written to %s", id)
		}
	}, SpecTimeout(2*time.Minute))
})

// doorkeeper keeps the connections that come before it opens: they are accepted, and nothing is read from them.
type doorkeeper struct {
	net.Listener

	count  atomic.Int64
	opened chan struct{}
	open   func()
}

func (d *doorkeeper) kept() int64 { return d.count.Load() }

// Accept takes a connection, whose first reader then waits.
func (d *doorkeeper) Accept() (net.Conn, error) {
	conn, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	d.count.Add(1)
	return &keptConn{Conn: conn, opened: d.opened}, nil
}

type keptConn struct {
	net.Conn

	opened <-chan struct{}
}

// Read waits until the door is open.
func (c *keptConn) Read(p []byte) (int, error) {
	<-c.opened
	return c.Conn.Read(p)
}

// secure gives the shop a receiver by https, behind a doorkeeper.
func (s *shop) secure(ctx context.Context) *doorkeeper {
	GinkgoHelper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(s.receiver.take))
	d := &doorkeeper{Listener: server.Listener, opened: make(chan struct{})}
	d.open = sync.OnceFunc(func() { close(d.opened) })
	server.Listener = d
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	server.StartTLS()
	DeferCleanup(server.Close)
	DeferCleanup(d.open) // before Close, which waits for the connections
	s.change(ctx, func(p *verifyv1.VerificationProject) {
		p.Spec.Webhook.URL = server.URL + "/hook"
		p.Spec.Webhook.CABundle = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	})
	return d
}

// detour is a way to the API server that can be cut: connections stay, and nothing moves on them any more.
type detour struct {
	listener net.Listener
	target   string
	broken   chan struct{}
	cut      func()
}

// detour lets the replicas that start from now on reach the API server by a detour.
func (s *shop) detour() *detour {
	GinkgoHelper()
	target, _, err := rest.DefaultServerUrlFor(s.config)
	Expect(err).NotTo(HaveOccurred())
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	d := &detour{listener: listener, target: target.Host, broken: make(chan struct{})}
	d.cut = sync.OnceFunc(func() { close(d.broken) })
	go d.serve() // ends with the listener
	DeferCleanup(listener.Close)
	DeferCleanup(d.cut)
	s.reach("https://" + listener.Addr().String())
	return d
}

func (d *detour) serve() {
	for {
		conn, err := d.listener.Accept()
		if err != nil {
			return
		}
		onward, err := net.Dial("tcp", d.target)
		if err != nil {
			_ = conn.Close()
			continue
		}
		go d.carry(conn, onward)
		go d.carry(onward, conn)
	}
}

// carry copies until the way is cut. It closes what it writes to only when the other side ended before that.
func (d *detour) carry(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		select {
		case <-d.broken:
			return // both connections end with the tests' process
		default:
		}
		if err == nil {
			_, err = to.Write(buffer[:n])
		}
		if err != nil {
			_ = to.Close()
			return
		}
	}
}

// held returns how many due events the process kept back for a cause.
func (r *replica) held(ctx context.Context, cause string) int {
	GinkgoHelper()
	return int(r.metric(ctx, "phoneproof_webhook_held_total", map[string]string{"cause": cause}))
}

// metric returns the value of a counter or gauge that the process shows, summed over the series that have these labels.
func (r *replica) metric(ctx context.Context, name string, labels map[string]string) float64 {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.health+"/metrics", nil)
	Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(raw))
	Expect(err).NotTo(HaveOccurred())
	sum := 0.0
	for _, metric := range families[name].GetMetric() {
		matching := 0
		for _, label := range metric.GetLabel() {
			if labels[label.GetName()] == label.GetValue() {
				matching++
			}
		}
		if matching == len(labels) {
			sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
	}
	return sum
}
