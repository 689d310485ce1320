package integration_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/rest"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/webhook"
	"github.com/phoneproof/phoneproof/test/tcpline"
)

// Between the last read of a request and the first byte of its event lies the receiver's TLS handshake, which may be slow. A
// leader whose lease is not safely held after the handshake must not send the event.
var _ = Describe("A holder whose lease goes stale while receivers shake hands", func() {
	// A lease is safely held for half its duration, and the term ends with the renew deadline: in between, only the check before
	// the first byte holds an event back. All of it lies within the 10 s that a handshake may take.
	const duration = 10 * time.Second
	It("sends none of the events when it cannot reach the API server", func(ctx SpecContext) {
		s := newShop(ctx)
		gate := s.useTLSReceiver(ctx)
		ids := s.createVerifiedRequests(ctx, webhook.SlowStart)
		s.lease = []string{"--lease-duration=10s", "--lease-renew-deadline=9s", "--lease-retry-period=250ms"}
		cut := s.startDetour(ctx)
		holder := s.startOne()
		Eventually(gate.countHeld).WithContext(ctx).Should(BeNumerically(">=", len(ids)))
		cut()
		since := time.Now()
		Eventually(time.Since).WithContext(ctx).WithArguments(since).Should(BeNumerically(">", duration/2))
		gate.open()
		inTime := time.Since(gate.first) < duration*3/4
		AddReportEntry("handshakes went on", time.Since(since).Round(10*time.Millisecond).String()+" after the route was cut")
		Eventually(holder.isLeading).WithContext(ctx).Should(BeFalse())
		Expect(s.receiver.deliveries()).To(BeEmpty(), "an event without a safely held lease")
		if inTime { // otherwise the end of the term, or the time for a handshake, may have ended the attempts
			Expect(holder.countHeld(ctx, "lease")).To(BeNumerically(">=", len(ids)), "all were held back because of the lease")
		}

		s.writeKubeconfig(s.config.Host)
		s.start(ctx, 1)
		s.awaitDelivered(ctx, ids, 1)
		Expect(s.receiver.deliveries()).To(HaveLen(len(ids)))
	}, SpecTimeout(hang))

	It("sends none of the events when it was stopped for two lease durations", func(ctx SpecContext) {
		const duration = 4 * time.Second // twice that is shorter than a handshake may take
		s := newShop(ctx)
		s.lease = []string{"--lease-duration=4s", "--lease-renew-deadline=3500ms", "--lease-retry-period=250ms"}
		gate := s.useTLSReceiver(ctx)
		ids := s.createVerifiedRequests(ctx, webhook.SlowStart)
		stopped := s.startOne()
		Eventually(gate.countHeld).WithContext(ctx).Should(BeNumerically(">=", len(ids)))
		Expect(stopped.Freeze()).To(Succeed())
		since, ofStopped := time.Now(), gate.addresses()
		gate.open() // the receiver's half of the handshakes waits until the holder runs again
		s.start(ctx, 1)
		Eventually(s.listUndelivered).WithContext(ctx).WithArguments(ids).Should(BeEmpty())
		states := s.listRequests(ctx)
		Eventually(time.Since).WithContext(ctx).WithArguments(since).Should(BeNumerically(">", 2*duration))

		Expect(stopped.Thaw()).To(Succeed())
		// Not its state: on a loaded machine it may lead again before that is read.
		Eventually(stopped.output).WithContext(ctx).Should(ContainSubstring("no longer leading"))
		// By the connection: on a loaded machine the other's lease may go stale too, and then it may send an event twice.
		Consistently(func() []string { return sendersOf(s.receiver.deliveries()) }).WithContext(ctx).WithTimeout(2*time.Second).
			ShouldNot(ContainElement(BeElementOf(ofStopped)), "an event over a handshake that began before the stop")
		for id, o := range s.listRequests(ctx) {
			Expect(o.ResourceVersion).To(Equal(states[id].ResourceVersion), "nothing was written to %s", id)
		}
	}, SpecTimeout(hang))
})

// gatedListener accepts connections, but reads nothing from those that arrive before it opens.
type gatedListener struct {
	net.Listener

	mu      sync.Mutex
	senders []string  // the address of each connection's other end
	first   time.Time // of the first connection; read it only when there is one
	opened  chan struct{}
	open    func()
}

func (d *gatedListener) countHeld() int { return len(d.addresses()) }

// addresses returns the senders' addresses of the connections so far.
func (d *gatedListener) addresses() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.senders)
}

// sendersOf returns the address that each delivery came from.
func sendersOf(deliveries []delivery) []string {
	senders := make([]string, len(deliveries))
	for i, d := range deliveries {
		senders[i] = d.from
	}
	return senders
}

// Accept accepts a connection, whose first reader then waits.
func (d *gatedListener) Accept() (net.Conn, error) {
	conn, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.senders) == 0 {
		d.first = time.Now()
	}
	d.senders = append(d.senders, conn.RemoteAddr().String())
	return &keptConn{Conn: conn, opened: d.opened}, nil
}

type keptConn struct {
	net.Conn

	opened <-chan struct{}
}

// Read waits until the listener is open.
func (c *keptConn) Read(p []byte) (int, error) {
	<-c.opened
	return c.Conn.Read(p)
}

// useTLSReceiver gives the shop a receiver with https, behind a gatedListener.
func (s *shop) useTLSReceiver(ctx context.Context) *gatedListener {
	GinkgoHelper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(s.receiver.recordDelivery))
	d := &gatedListener{Listener: server.Listener, opened: make(chan struct{})}
	d.open = sync.OnceFunc(func() { close(d.opened) })
	server.Listener = d
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	server.StartTLS()
	DeferCleanup(server.Close)
	DeferCleanup(d.open) // before Close, which waits for the connections
	s.editProject(ctx, func(p *verifyv1.VerificationProject) {
		p.Spec.Webhook.URL = server.URL + "/hook"
		p.Spec.Webhook.CABundle = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	})
	return d
}

// startDetour makes replicas that start from now on reach the API server by a route that can be cut: then connections stay open, but carry
// nothing any more.
func (s *shop) startDetour(ctx context.Context) (cut func()) {
	GinkgoHelper()
	target, _, err := rest.DefaultServerUrlFor(s.config)
	Expect(err).NotTo(HaveOccurred())
	broken := make(chan struct{})
	line, err := tcpline.Listen(ctx, target.Host, func(p *tcpline.Pair) {
		go copyBytes(p, p.Client, p.Server, broken)
		copyBytes(p, p.Server, p.Client, broken)
	}, nil)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(line.Close)
	s.writeKubeconfig("https://" + line.Address)
	return sync.OnceFunc(func() { close(broken) })
}

// copyBytes copies until one side of the pair ends. Once the route is broken, it waits for that instead.
func copyBytes(p *tcpline.Pair, to, from net.Conn, broken <-chan struct{}) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		select {
		case <-broken:
			<-p.Ended()
			return
		default:
		}
		if err == nil {
			_, err = to.Write(buffer[:n])
		}
		if err != nil {
			p.Close()
			return
		}
	}
}

// countHeld returns how many due events the process held back for a cause.
func (r *replica) countHeld(ctx context.Context, cause string) int {
	GinkgoHelper()
	return int(r.readMetric(ctx, "phoneproof_webhook_held_total", map[string]string{"cause": cause}))
}

// readMetric returns the value of a counter or gauge of the process, summed over the series with these labels.
func (r *replica) readMetric(ctx context.Context, name string, labels map[string]string) float64 {
	GinkgoHelper()
	status, _, page := sendRequest(ctx, http.MethodGet, "http://"+r.Health+"/metrics", nil, "")
	Expect(status).To(Equal(http.StatusOK))
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(page))
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
