package telegram

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/store/memory"
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
	logs     *safeBuffer
}

type safeBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *safeBuffer) line(prefix, args string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.b.WriteString(prefix + args + "\n")
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
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
	w := &world{WithT: NewWithT(t), t: t, settings: liveSettings(), api: &fakeAPI{}, registry: prometheus.NewRegistry(), logs: &safeBuffer{}}
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
	return verification.NewService(verification.NewProject(projectName), w.backend.Open(projectName))
}

// open returns a channel over the world's Bot API.
func (w *world) open(service *verification.Service, clk clock.PassiveClock) *Channel {
	w.t.Helper()
	client, err := NewClient(ClientOptions{Transport: w.api})
	w.Expect(err).NotTo(HaveOccurred())
	c, err := New(Options{
		Settings: w.current, Service: service, Client: client, Clock: clk,
		Log: w.logger(), Registerer: w.registry,
	})
	w.Expect(err).NotTo(HaveOccurred())
	return c
}

func (w *world) current() *settings.Settings {
	if s := w.replaced.Load(); s != nil {
		return s
	}
	return w.settings
}

func (w *world) logger() logr.Logger { return funcr.New(w.logs.line, funcr.Options{Verbosity: 9}) }

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
func (w *world) accept(update []byte) outcome {
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

func (w *world) outcomes() map[outcome]float64 {
	all := map[outcome]float64{}
	families, err := w.registry.Gather()
	w.Expect(err).NotTo(HaveOccurred())
	for _, f := range families {
		if f.GetName() == "phoneproof_telegram_updates_total" {
			for _, m := range f.GetMetric() {
				all[outcome(m.GetLabel()[0].GetValue())] = m.GetCounter().GetValue()
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
	return testutil.ToFloat64(w.channel.metrics.replies.WithLabelValues(result))
}

// update returns a text, contactUpdate a contact, of a user, sent now.
func (w *world) update(id, from int64, text string) []byte {
	return fmt.Appendf(nil, `{"update_id":%d,"message":{"message_id":1,"from":{"id":%d,"is_bot":false,"first_name":"A"},"chat":{"id":%d,"type":"private"},"date":%d,"text":%q}}`,
		id, from, from, w.now().Unix(), text)
}

func (w *world) contactUpdate(id, from int64, number string) []byte {
	return fmt.Appendf(nil, `{"update_id":%d,"message":{"message_id":1,"from":{"id":%d,"is_bot":false,"first_name":"A"},"chat":{"id":%d,"type":"private"},"date":%d,"contact":{"phone_number":%q,"first_name":"A","user_id":%d}}}`,
		id, from, from, w.now().Unix(), number, from)
}

func (w *world) now() time.Time {
	if w.clock == nil {
		return time.Now()
	}
	return w.clock.Now()
}

// sent is a call that the Bot API got.
type sent struct {
	host   string
	token  string
	method string
	body   []byte
}

// fakeAPI plays the Bot API as tdlib/telegram-bot-api does it, in the caller's goroutine: as a Transport, so that it works
// in a bubble, or as a Handler. Its zero value has no updates and no webhook.
type fakeAPI struct {
	mu      sync.Mutex
	calls   []sent
	queue   []json.RawMessage
	ids     []int64
	webhook string
	// fail returns a golden answer and its status to give in place of the real one; "" for none.
	fail func(method string, body []byte) string
	// before is called before getUpdates looks at the queue.
	before func()
}

func (f *fakeAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	f.ServeHTTP(recorder, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return recorder.Result(), nil
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, method, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/bot"), "/")
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		panic("not a call of the Bot API")
	}
	f.mu.Lock()
	f.calls = append(f.calls, sent{r.URL.Host, token, method, body})
	fail, before := f.fail, f.before
	f.mu.Unlock()
	if fail != nil {
		if name := fail(method, body); name != "" {
			f.answerGolden(w, name)
			return
		}
	}
	switch method {
	case "getUpdates":
		if before != nil {
			before()
		}
		f.getUpdates(w, r, body)
	case "getWebhookInfo":
		f.mu.Lock()
		defer f.mu.Unlock()
		fmt.Fprintf(w, `{"ok":true,"result":{"url":%q,"has_custom_certificate":false,"pending_update_count":%d}}`, f.webhook, len(f.queue))
	case "deleteWebhook":
		f.mu.Lock()
		defer f.mu.Unlock()
		f.webhook = ""
		fmt.Fprint(w, `{"ok":true,"result":true,"description":"Webhook was deleted"}`)
	default:
		fmt.Fprint(w, `{"ok":true,"result":true}`)
	}
}

func (f *fakeAPI) answerGolden(w http.ResponseWriter, name string) {
	b, err := os.ReadFile("testdata/answers/" + name + ".json")
	if err != nil {
		panic(err)
	}
	if parts := strings.Split(name, "_"); parts[0] == "error" {
		status, err := strconv.Atoi(parts[1])
		if err != nil {
			panic(err)
		}
		w.WriteHeader(status)
	}
	w.Write(b) //nolint:errcheck // a recorder's
}

// getUpdates forgets what is before the offset and holds the poll until there is something.
func (f *fakeAPI) getUpdates(w http.ResponseWriter, r *http.Request, body []byte) {
	var in getUpdates
	if err := json.Unmarshal(body, &in); err != nil {
		panic(err)
	}
	f.mu.Lock()
	if f.webhook != "" {
		f.mu.Unlock()
		f.answerGolden(w, "error_409_webhook")
		return
	}
	for len(f.ids) > 0 && f.ids[0] < in.Offset {
		f.ids, f.queue = f.ids[1:], f.queue[1:]
	}
	n := min(len(f.queue), in.Limit)
	batch := f.queue[:n:n]
	f.mu.Unlock()
	if n == 0 {
		timer := time.NewTimer(time.Duration(in.Timeout) * time.Second)
		defer timer.Stop()
		select {
		case <-r.Context().Done():
		case <-timer.C:
		}
		batch = []json.RawMessage{}
	}
	b, err := json.Marshal(struct {
		OK     bool              `json:"ok"`
		Result []json.RawMessage `json:"result"`
	}{true, batch})
	if err != nil {
		panic(err)
	}
	w.Write(b) //nolint:errcheck // a recorder's
}

// arrive puts an update into the queue.
func (f *fakeAPI) arrive(id int64, update []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ids, f.queue = append(f.ids, id), append(f.queue, update)
}

func (f *fakeAPI) waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.queue)
}

// failing sets what answers instead of the real thing.
func (f *fakeAPI) failing(fail func(method string, body []byte) string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = fail
}

// got returns the bodies of the calls of a method.
func (f *fakeAPI) got(method string) [][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all [][]byte
	for _, c := range f.calls {
		if c.method == method {
			all = append(all, c.body)
		}
	}
	return all
}

func (f *fakeAPI) all() []sent {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// always fails every call of a method.
func always(method, answer string) func(string, []byte) string {
	return func(m string, _ []byte) string {
		if m == method {
			return answer
		}
		return ""
	}
}

// quietly posts an update without anything that logs.
func (w *world) quietly(update []byte, secret string) int {
	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, HookPath, bytes.NewReader(update))
	r.Header.Set(secretHeader, secret)
	recorder := httptest.NewRecorder()
	w.channel.Hook().ServeHTTP(recorder, r)
	return recorder.Code
}
