package server

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/boundedhttp"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/store/memory"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/internal/webhook"
)

// testServer is a server whose machine clock is an hour behind the store clock. It exposes its guard and receiver.
type testServer struct {
	*server
	*WithT

	machine *clocktesting.FakeClock
	store   countedStore
	guard   webhook.GuardConfig // the one that the server passed to NewGuard
	// headers receives the headers of each event.
	headers chan http.Header
}

const apiKey = "a-key-of-more-than-thirty-two-characters"

func newTestServer(t *testing.T) *testServer {
	t.Helper()
	w := &testServer{WithT: NewWithT(t), machine: clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0)), headers: make(chan http.Header, 1)}
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { w.headers <- r.Header }))
	t.Cleanup(receiver.Close)
	current := &settings.Settings{
		Project: "shop/acme", ProjectID: "shop/acme", TTL: 10 * time.Minute, Retention: time.Hour,
		Keys:    settings.NewKeys(settings.Key{Name: "backend", Hash: sha256.Sum256([]byte(apiKey)), Scopes: settings.ScopeInit | settings.ScopeStatus}),
		Webhook: &settings.Webhook{URL: receiver.URL, Events: verification.NewEventKinds(verification.EventSuccess), Timeout: time.Minute},
	}
	w.server = &server{
		dependencies: Dependencies{
			Clock: w.machine, ConnectionBudget: boundedhttp.Budget(),
			WrapHandler: func(next http.Handler) http.Handler { return next },
			NewGuard: func(c webhook.GuardConfig) *webhook.Guard {
				w.guard = c
				return webhook.NewDevGuard(webhook.GuardConfig{}) // the receiver is on loopback
			},
		},
		project: verification.NewCodeSpace("shop/acme"), current: func() *settings.Settings { return current },
		registry: prometheus.NewRegistry(), clock: newStoreClock(w.machine, logr.Discard()),
	}
	w.clock.beginMeasurement()(w.machine.Now().Add(time.Hour), 0)
	w.store = memory.NewBackend(memory.Options{Clock: w.clock}).Open("shop/acme")
	return w
}

func (w *testServer) createRequest(t *testing.T) verification.Request {
	t.Helper()
	number, err := phone.FromE164("+4915112345678")
	w.Expect(err).NotTo(HaveOccurred())
	code, err := w.project.NewCode(zeros{})
	w.Expect(err).NotTo(HaveOccurred())
	created, err := w.store.Create(t.Context(), verification.New{
		ID: w.project.RequestID(code), Phone: number, Method: verification.WhatsApp, TTL: 10 * time.Minute,
	}, verification.Limits{})
	w.Expect(err).NotTo(HaveOccurred())
	return created.Request
}

// zeros is a random source of zeros only.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestRequestLoop_guardsItsWebhooks(t *testing.T) {
	t.Setenv("HOST_IPS", "10.20.0.7")
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
	w := newTestServer(t)
	w.options.Webhook = WebhookOptions{Allow: []string{"shop=10.0.0.0/8"}, Deny: []string{"198.51.100.0/24"}}
	w.apiServerURL = "https://10.30.0.1:6443"
	_, err := w.newRequestLoop(t.Context(), w.store, func() bool { return true })
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(fmt.Sprint(w.guard.Allow)).To(Equal("[shop=10.0.0.0/8]"))
	w.Expect(w.guard.Deny).To(ConsistOf(netip.MustParsePrefix("198.51.100.0/24")))
	w.Expect(w.guard.APIServer).To(ConsistOf(netip.MustParseAddr("10.30.0.1"), netip.MustParseAddr("10.96.0.1")))
	w.Expect(w.guard.Own).To(ContainElement(netip.MustParseAddr("10.20.0.7")))
}

func TestGuardConfig_knowsTheAddressesOfThisPod(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("HOST_IPS", "")
	addresses, err := net.InterfaceAddrs()
	g.Expect(err).NotTo(HaveOccurred())
	var want []netip.Addr
	for _, address := range addresses {
		if own := netip.MustParsePrefix(address.String()).Addr(); !own.IsLoopback() {
			want = append(want, own)
		}
	}
	config, err := new(WebhookOptions).guardConfig(t.Context(), "")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Own).To(Equal(want))
}

func TestRequestLoop_sendsOnlyThroughItsGate(t *testing.T) {
	w := newTestServer(t)
	open := false
	loop, err := w.newRequestLoop(t.Context(), w.store, func() bool { return open })
	w.Expect(err).NotTo(HaveOccurred())
	to := webhook.NewEndpoint("shop", w.current().Webhook)
	event := w.createEvent(t)
	_, err = loop.Sender.Send(t.Context(), to, event)
	w.Expect(err).To(MatchError(webhook.ErrNotLeading))
	w.Expect(w.headers).NotTo(Receive())
	open = true
	_, err = loop.Sender.Send(t.Context(), to, event)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.headers).To(Receive())
}

func (w *testServer) createEvent(t *testing.T) webhook.Event {
	t.Helper()
	r, err := w.store.Update(t.Context(), w.createRequest(t).ID, func(r *verification.Request, now time.Time) error {
		return r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, verification.NewEventKinds(verification.EventSuccess))
	})
	w.Expect(err).NotTo(HaveOccurred())
	event, err := webhook.NewEvent("shop/acme", &r)
	w.Expect(err).NotTo(HaveOccurred())
	return event
}

func TestCluster_maySend_notForASuspendedOrDeletedProject(t *testing.T) {
	g := NewWithT(t)
	c := &cluster{source: &object{}}
	g.Expect(c.maySend()).To(BeFalse())
	c.source.project = &verifyv1.VerificationProject{}
	g.Expect(c.maySend()).To(BeTrue())
	c.source.project.Spec.Suspend = new(true)
	g.Expect(c.maySend()).To(BeFalse())
}

// A healthy start logs no error, and an outage is logged as soon as the settings are there.
func TestClaimLoop_startsAfterTheDatabase(t *testing.T) {
	w := newTestServer(t)
	errs := make(chan string, 100)
	w.log = funcr.New(func(_, line string) {
		if strings.Contains(line, `"error"=`) {
			errs <- line
		}
	}, funcr.Options{})
	synctest.Test(t, func(t *testing.T) {
		source := &object{first: make(chan struct{})}
		store, err := w.openDatabase()
		w.Expect(err).NotTo(HaveOccurred())
		claims, err := w.newClaimLoop(t.Context(), store, func() bool { return true }, nil)
		w.Expect(err).NotTo(HaveOccurred())
		go func() { _ = startWhenReady(source, claims).Start(t.Context()) }()
		<-time.After(time.Hour)
		w.Expect(errs).NotTo(Receive())
		close(source.first)
		synctest.Wait()
		w.Expect(errs).To(Receive(ContainSubstring(`"the database does not serve" "error"="there is no connection URI`)))
		<-time.After(time.Second)
		w.Expect(errs).To(Receive(ContainSubstring("failed, will retry")), "the loop runs")
	})
}

func TestRequestLoop_goesByTheStoreClock(t *testing.T) {
	w := newTestServer(t)
	loop, err := w.newRequestLoop(t.Context(), w.store, func() bool { return true })
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(loop.Clock.Now()).To(Equal(w.machine.Now().Add(time.Hour)))
	_, err = loop.Sender.Send(t.Context(), webhook.NewEndpoint("shop", w.current().Webhook), w.createEvent(t))
	w.Expect(err).NotTo(HaveOccurred())
	var header http.Header
	w.Expect(w.headers).To(Receive(&header))
	w.Expect(header.Get("Webhook-Timestamp")).To(Equal(strconv.FormatInt(w.machine.Now().Add(time.Hour).Unix(), 10)))
}

func TestAPI_goesByTheStoreClock(t *testing.T) {
	w := newTestServer(t)
	r := w.createRequest(t)
	address := w.startAPI(t)
	status := func() string {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/api/verify/status?id="+r.ID, nil)
		w.Expect(err).NotTo(HaveOccurred())
		request.Header.Set("Authorization", "Bearer "+apiKey)
		response, err := http.DefaultClient.Do(request)
		w.Expect(err).NotTo(HaveOccurred())
		defer response.Body.Close()
		var answer struct {
			Status string `json:"status"`
		}
		w.Expect(json.NewDecoder(response.Body).Decode(&answer)).To(Succeed())
		return answer.Status
	}
	w.Expect(status()).To(Equal("PENDING"))
	w.machine.Step(11 * time.Minute) // by the machine's clock, the request has not started yet
	w.Expect(status()).To(Equal("EXPIRED"))
}

func TestDependencies_defaultGuardRefusesLoopback(t *testing.T) {
	w := newTestServer(t)
	guard := Dependencies{}.withDefaults().NewGuard(webhook.GuardConfig{})
	sender := webhook.NewSender(webhook.Options{Guard: guard})
	t.Cleanup(sender.Close)
	result, err := sender.Send(t.Context(), webhook.NewEndpoint("shop", w.current().Webhook), w.createEvent(t))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(result.Reason).To(Equal(webhook.ReasonBlockedAddress))
	w.Expect(w.headers).NotTo(Receive())
}
