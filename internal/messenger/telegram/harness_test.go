package telegram

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/store/memory"
	"github.com/phoneproof/phoneproof/internal/texts"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// The people, codes and numbers of testdata.
const (
	projectName  = "shop/acme"
	botToken     = "5021:AAH-canary_token_of_the_bot_0123456789"
	claimed      = "+4915112345678"
	goldenCode   = "A5Z3-8SS1-NM0V-VGWK"
	otherCode    = "K9E2-AT8B-EG10-P4EV"
	user         = int64(7304118825)
	goldenSecond = 1795255200
)

// world is a project with a bot over a memory store and a Bot API that is played by fakeAPI.
type world struct {
	*WithT

	t        testing.TB
	clock    *clocktesting.FakePassiveClock // nil if time is real, or a bubble's
	backend  *memory.Backend
	service  *verification.Service
	settings *settings.Settings
	replaced atomic.Pointer[settings.Settings] // counts in place of settings, also while a poller runs
	api      *fakeAPI
	channel  *Channel
	registry *prometheus.Registry
	logs     *gbytes.Buffer
}

func liveSettings() *settings.Settings {
	return &settings.Settings{
		Project: projectName, ProjectID: projectName, DisplayName: "Example Shop",
		Telegram: &settings.Telegram{BotUsername: "example_shop_bot", BotToken: settings.NewSecret([]byte(botToken))},
		TTL:      10 * time.Minute, Retention: time.Hour,
	}
}

// newWorld returns a world at the time of the goldens. In a bubble of synctest, realTime is the bubble's.
func newWorld(t testing.TB, realTime ...bool) *world {
	t.Helper()
	w := &world{
		WithT: NewWithT(t), t: t, settings: liveSettings(), api: &fakeAPI{}, registry: prometheus.NewRegistry(), logs: gbytes.NewBuffer(),
	}
	var clk clock.PassiveClock = clock.RealClock{}
	if len(realTime) == 0 {
		w.clock = clocktesting.NewFakePassiveClock(time.Unix(goldenSecond, 0).UTC())
		clk = w.clock
	}
	w.backend = memory.NewBackend(memory.Options{Clock: clk})
	w.service = w.replica()
	w.channel = w.open(w.service, clk)
	return w
}

func (w *world) replica() *verification.Service {
	return verification.NewService(verification.NewCodeSpace(projectName), w.backend.Open(projectName))
}

// open returns a channel over the world's Bot API.
func (w *world) open(service *verification.Service, clk clock.PassiveClock) *Channel {
	w.t.Helper()
	client, err := NewClient(ClientOptions{Transport: w.api})
	w.Expect(err).NotTo(HaveOccurred())
	c, err := New(Options{
		Settings: w.current, Service: service, Client: client, PageURL: pageOf, Clock: clk,
		Log: w.logger(), Registerer: w.registry,
	})
	w.Expect(err).NotTo(HaveOccurred())
	return c
}

// pageOf returns the page of a request as internal/page does, but for the ticket.
func pageOf(s *settings.Settings, _ *verification.Request) string {
	if s.Page == nil {
		return ""
	}
	return s.BaseURL + "/v/canaryticket"
}

func (w *world) current() *settings.Settings {
	if s := w.replaced.Load(); s != nil {
		return s
	}
	return w.settings
}

// logger logs everything into w.logs.
func (w *world) logger() logr.Logger {
	return funcr.New(func(prefix, args string) { _, _ = fmt.Fprintln(w.logs, prefix+args) }, funcr.Options{Verbosity: 9})
}

// initiate makes the request whose code is that of an Idempotency-Key: "golden" and "other" are those of testdata.
func (w *world) initiate(key string) verification.Initiated {
	w.t.Helper()
	number, err := phone.FromE164(claimed)
	w.Expect(err).NotTo(HaveOccurred())
	initiated, err := w.service.Initiate(w.t.Context(), verification.Initiation{
		Phone: number, Method: verification.Telegram, KeyName: "backend", KeyHash: sha256.Sum256([]byte("key")), TTL: 10 * time.Minute,
		IdempotencyKey: key, HasIdempotencyKey: true,
	})
	w.Expect(err).NotTo(HaveOccurred())
	return initiated
}

func (w *world) phase(id string) verification.Phase {
	w.t.Helper()
	r, err := w.service.Status(w.t.Context(), id)
	w.Expect(err).NotTo(HaveOccurred())
	return r.Phase
}

func (w *world) later(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }

// golden reads a file of testdata.
func golden(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + path + ".json")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return b
}

// post brings an update to the hook, as Telegram does.
func (w *world) post(update []byte) *httptest.ResponseRecorder {
	return w.postTo(w.channel, update, WebhookSecret([]byte(botToken), projectName))
}

func (w *world) postTo(c *Channel, update []byte, secrets ...string) *httptest.ResponseRecorder {
	w.t.Helper()
	r := httptest.NewRequestWithContext(logr.NewContext(w.t.Context(), w.logger()), http.MethodPost, HookPath, bytes.NewReader(update))
	r.Header[http.CanonicalHeaderKey(secretHeader)] = secrets
	recorder := httptest.NewRecorder()
	c.Hook().ServeHTTP(recorder, r)
	return recorder
}

// accept posts an update that must be acknowledged, and returns what became of it.
func (w *world) accept(update []byte) messenger.Outcome {
	w.t.Helper()
	before := w.outcomes()
	answer := w.post(update)
	w.Expect(answer.Code).To(Equal(http.StatusOK))
	w.Expect(answer.Body.Len()).To(BeZero(), "a body could be a call of a method")
	for became, n := range w.outcomes() {
		if n > before[became] {
			return became
		}
	}
	w.t.Fatal("no outcome was counted")
	return ""
}

func (w *world) outcomes() map[messenger.Outcome]float64 {
	all := map[messenger.Outcome]float64{}
	families, err := w.registry.Gather()
	w.Expect(err).NotTo(HaveOccurred())
	for _, f := range families {
		if f.GetName() == "phoneproof_messages_total" {
			for _, m := range f.GetMetric() {
				if n := m.GetCounter().GetValue(); n > 0 {
					all[messenger.Outcome(m.GetLabel()[1].GetValue())] = n
				}
			}
		}
	}
	return all
}

// flush sends the replies that wait.
func (w *world) flush() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	cancel()
	w.Expect(w.channel.Start(ctx)).To(Succeed())
}

func (w *world) replied(result string) float64 {
	return testutil.ToFloat64(w.channel.metrics.Replies.WithLabelValues(result))
}

// update returns a text, contactUpdate a contact, of a user, sent now.
func (w *world) update(id, from int64, text string) []byte {
	return fmt.Appendf(nil, `{"update_id":%d,"message":{"message_id":1,"from":{"id":%d,"is_bot":false,"first_name":"A"},"chat":{"id":%d,"type":"private"},"date":%d,"text":%q}}`,
		id, from, from, w.now().Unix(), text)
}

func (w *world) contactUpdate(id, from int64, number string) []byte {
	return w.contactLater(id, from, number, 0)
}

// contactLater is a contactUpdate that is sent so much later.
func (w *world) contactLater(id, from int64, number string, later time.Duration) []byte {
	return fmt.Appendf(nil, `{"update_id":%d,"message":{"message_id":1,"from":{"id":%d,"is_bot":false,"first_name":"A"},"chat":{"id":%d,"type":"private"},"date":%d,"contact":{"phone_number":%q,"first_name":"A","user_id":%d}}}`,
		id, from, from, w.now().Add(later).Unix(), number, from)
}

func (w *world) now() time.Time {
	if w.clock == nil {
		return time.Now()
	}
	return w.clock.Now()
}

// quietly posts an update without anything that logs.
func (w *world) quietly(update []byte, secret string) int {
	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, HookPath, bytes.NewReader(update))
	r.Header.Set(secretHeader, secret)
	recorder := httptest.NewRecorder()
	w.channel.Hook().ServeHTTP(recorder, r)
	return recorder.Code
}

// The built-in texts.
var (
	english          = texts.BuiltIn().In("")
	textVerified     = english.Verified
	textWrongNumber  = english.TelegramWrongNumber
	textExpired      = english.TelegramExpired
	textUnknown      = english.TelegramUnknown
	textShareContact = english.TelegramShareContact
)
