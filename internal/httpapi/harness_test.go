package httpapi

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/messenger/telegram"
	"github.com/phoneproof/phoneproof/internal/messenger/whatsapp"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/store/memory"
	"github.com/phoneproof/phoneproof/internal/verification"
)

const (
	projectName = "shop/checkout"

	keyInit    = "the/key+that~may=only?init,not{status}!" // any 32 visible characters are a key
	keyStatus  = "the-key-that-may-only-status-0123456789"
	keyExpired = "the-key-that-is-expired-0123456789abcde"

	keyRead      = "the-key-that-may-only-read-0123456789abc"
	keyRedeliver = "the-key-that-may-only-redeliver-01234567"
)

// TestMain sets a timeout of Eventually that is long enough for a slow machine.
func TestMain(m *testing.M) {
	SetDefaultEventuallyTimeout(20 * time.Second)
	m.Run()
}

// keyAll is a key with all scopes, as keygen makes it.
var keyAll = func() string {
	key, err := settings.NewAPIKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}()

// keysOf returns the keys that the tests use.
func keysOf(extra ...settings.Key) settings.Keys {
	both := settings.ScopeInit | settings.ScopeStatus
	return settings.NewKeys(append([]settings.Key{
		{Name: "all", Hash: sha256.Sum256([]byte(keyAll)), Scopes: both},
		{Name: "init", Hash: sha256.Sum256([]byte(keyInit)), Scopes: settings.ScopeInit},
		{Name: "status", Hash: sha256.Sum256([]byte(keyStatus)), Scopes: settings.ScopeStatus},
		{Name: "read", Hash: sha256.Sum256([]byte(keyRead)), Scopes: settings.ScopeRead},
		{Name: "redeliver", Hash: sha256.Sum256([]byte(keyRedeliver)), Scopes: settings.ScopeRedeliver},
		{Name: "old", Hash: sha256.Sum256([]byte(keyExpired)), Scopes: both, ExpiresAt: time.Unix(1, 0)},
	}, extra...)...)
}

// liveSettings are a project with both messengers and no limits.
func liveSettings() *settings.Settings {
	usable := settings.NewSecret([]byte("a secret of the messenger's account"))
	return &settings.Settings{
		Project: projectName, ProjectID: projectName, DisplayName: "Example \"Shop\" <ü>\u2028",
		Keys:     keysOf(),
		WhatsApp: &settings.WhatsApp{PhoneNumber: "+15550001111", AppSecret: usable},
		Telegram: &settings.Telegram{BotUsername: "example_shop_bot", BotToken: usable},
		Purposes: map[string]settings.Purpose{"sign-in": {}, "a": {}, strings.Repeat("p", 32): {}},
		TTL:      10 * time.Minute, Retention: time.Hour,
	}
}

// stoppedClock makes the tested limits independent of the speed of the machine.
func stoppedClock(s *setup) {
	s.options.Clock = clocktesting.NewFakeClock(time.Now().Truncate(time.Second))
}

// harness is a project served on loopback, with its log and its metrics.
type harness struct {
	t        testing.TB
	backend  *memory.Backend
	store    *countingStore
	service  *verification.Service
	settings atomic.Pointer[settings.Settings]
	api      *API
	hook     *whatsapp.Hook
	server   *Server
	address  string
	logs     *gbytes.Buffer
	registry *prometheus.Registry
	client   *http.Client
	stop     func() error
	canaries canaries
}

// setup changes a harness before it starts.
type setup struct {
	limits   limits
	options  Options
	server   ServerOptions
	settings *settings.Settings
}

// newHarness serves a project on loopback until the test ends, and then checks that the log and the metrics contain no
// canary.
func newHarness(t testing.TB, changes ...func(*setup)) *harness {
	t.Helper()
	g := NewWithT(t)
	h := &harness{t: t, registry: prometheus.NewRegistry(), logs: gbytes.NewBuffer()}
	h.canaries.add(keyAll, keyInit, keyStatus, keyExpired, keyRead, keyRedeliver)
	c := setup{limits: patientLimits(), settings: liveSettings()}
	c.server.DrainDelay = -1
	for _, change := range changes {
		change(&c)
	}
	h.settings.Store(c.settings)
	if c.options.Clock == nil {
		c.options.Clock = clock.RealClock{}
	}
	h.backend = memory.NewBackend(memory.Options{Clock: c.options.Clock})
	h.store = &countingStore{Store: h.backend.Open(projectName)}
	h.service = verification.NewService(verification.NewCodeSpace(projectName), h.store)

	log := logr.FromSlogHandler(slog.NewJSONHandler(h.logs, nil))
	c.options.Settings, c.options.Service, c.options.Invite = h.settings.Load, h.service, newInvitation
	c.options.Log, c.options.Registerer = log, h.registry
	var err error
	h.hook, err = whatsapp.NewHook(whatsapp.Options{
		Settings: h.settings.Load, Service: h.service, Client: new(whatsapp.Client), Codes: new(messenger.CodeMetrics),
	})
	g.Expect(err).NotTo(HaveOccurred())
	c.options.ReadUnsigned = h.hook.ReadUnsigned
	h.api, err = New(c.options)
	g.Expect(err).NotTo(HaveOccurred())

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	h.address = listener.Addr().String()
	c.server.Handler, c.server.Listener, c.server.Log, c.server.Registerer = h.api, listener, log, h.registry
	h.server, err = newServer(c.server, c.limits)
	g.Expect(err).NotTo(HaveOccurred())
	h.start()
	h.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	t.Cleanup(func() {
		h.client.CloseIdleConnections()
		g.Expect(h.stop()).To(Succeed())
		h.canaries.check(t, "log", h.logText())
		h.canaries.check(t, "metrics", h.gatherMetrics())
	})
	return h
}

// patientLimits are those of tests about something else: on a busy machine a connection may wait for the processor for longer than
// defaultLimits give its headers.
func patientLimits() limits {
	l := defaultLimits
	l.readHeader, l.read, l.write = time.Minute, time.Minute, time.Minute
	return l
}

func (h *harness) start() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.server.Start(ctx) }()
	h.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
}

// newInvitation is the Invite option of the tests. Its links match the patterns of the contract.
func newInvitation(s *settings.Settings, r *verification.Request, code verification.Code) Invitation {
	page := ""
	if s.Page != nil {
		page = "https://verify.example/v/TICKET"
	}
	if r.Method == verification.Telegram {
		return Invitation{Link: telegram.Link(s.Telegram.BotUsername, code), ExpectedText: telegram.ExpectedText(code), PageURL: page}
	}
	text := whatsapp.ExpectedText(s, r, code)
	return Invitation{Link: whatsapp.Link(s.WhatsApp.PhoneNumber, text), ExpectedText: text, PageURL: page}
}

// changeSettings replaces the settings, as the watch of a project does.
func (h *harness) changeSettings(edit func(*settings.Settings)) {
	next := *h.settings.Load()
	edit(&next)
	h.settings.Store(&next)
}

// gatherMetrics returns the metrics in the text format of Prometheus.
func (h *harness) gatherMetrics() string {
	families, err := h.registry.Gather()
	if err != nil {
		h.t.Fatal(err)
	}
	var text strings.Builder
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			h.t.Fatal(err)
		}
	}
	return text.String()
}

// newNumber returns a valid phone number that depends on n, and adds it to the canaries.
func (h *harness) newNumber(n int) string {
	number := fmt.Sprintf("+49151%08d", n)
	h.canaries.add(number[1:])
	return number
}

// logText returns the log so far.
func (h *harness) logText() string { return string(h.logs.Contents()) }

// parseLog returns the parsed lines of the log so far.
func (h *harness) parseLog() []map[string]any {
	var lines []map[string]any
	for line := range strings.Lines(h.logText()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err == nil {
			lines = append(lines, fields)
		}
	}
	return lines
}

// countingStore counts the calls of the store by clients.
type countingStore struct {
	verification.Store

	calls atomic.Int64
	// before is called at the start of each call, if set.
	before atomic.Pointer[func(context.Context) error]
}

func (s *countingStore) countCall(ctx context.Context) error {
	s.calls.Add(1)
	if before := s.before.Load(); before != nil {
		return (*before)(ctx)
	}
	return nil
}

func (s *countingStore) Create(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
	if err := s.countCall(ctx); err != nil {
		return verification.Created{}, err
	}
	return s.Store.Create(ctx, n, l)
}

func (s *countingStore) Read(ctx context.Context, id string) (verification.Request, error) {
	if err := s.countCall(ctx); err != nil {
		return verification.Request{}, err
	}
	return s.Store.Read(ctx, id)
}

func (s *countingStore) ReadFinal(ctx context.Context, id string) (verification.Request, error) {
	if err := s.countCall(ctx); err != nil {
		return verification.Request{}, err
	}
	return s.Store.ReadFinal(ctx, id)
}

func (s *countingStore) List(ctx context.Context, q verification.ListQuery) (verification.ListPage, error) {
	if err := s.countCall(ctx); err != nil {
		return verification.ListPage{}, err
	}
	return s.Store.List(ctx, q)
}

func (s *countingStore) Update(ctx context.Context, id string, mutate verification.Mutation) (verification.Request, error) {
	if err := s.countCall(ctx); err != nil {
		return verification.Request{}, err
	}
	return s.Store.Update(ctx, id, mutate)
}
