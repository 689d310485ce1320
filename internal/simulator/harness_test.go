package simulator

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	botapi "github.com/phoneproof/phoneproof/internal/messenger/telegram"
	"github.com/phoneproof/phoneproof/internal/messenger/whatsapp"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// patience is for what another goroutine does on a machine that is busy.
const patience = 30 * time.Second

// runningSimulator is a simulator that runs, and the clients that the product calls it with.
type runningSimulator struct {
	*WithT

	t      *testing.T
	sim    *Simulator
	url    string
	graph  *whatsapp.Client
	botAPI *botapi.Client
}

func startSimulator(t *testing.T, o Options) *runningSimulator {
	t.Helper()
	w := &runningSimulator{WithT: NewWithT(t), t: t}
	if o.Retry == 0 {
		o.Retry = time.Millisecond
	}
	w.sim = New(o)
	server := httptest.NewServer(w.sim)
	t.Cleanup(server.Close)
	w.url = server.URL
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.sim.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		w.Expect(<-ended).To(Succeed())
	})
	var err error
	w.graph, err = whatsapp.NewClient(whatsapp.ClientOptions{SimulatorURL: w.url})
	w.Expect(err).NotTo(HaveOccurred())
	w.botAPI, err = botapi.NewClient(botapi.ClientOptions{SimulatorURL: w.url})
	w.Expect(err).NotTo(HaveOccurred())
	return w
}

// whatsAppAccount is what the product knows of an account.
func whatsAppAccount(credential string) *settings.WhatsApp {
	secret := settings.NewSecret([]byte(credential))
	return &settings.WhatsApp{
		PhoneNumber: "+4915112345670", PhoneNumberID: "1234567890", AccessToken: secret, AppSecret: secret, Simulated: true,
	}
}

func telegramAccount(token string) *settings.Telegram {
	return &settings.Telegram{BotUsername: "shop_bot", BotToken: settings.NewSecret([]byte(token)), Simulated: true}
}

// The credentials of the tests, and the links of their accounts.
const (
	credential = "sim_4915112345670:x"
	token      = "sim_shop_bot:x"
	waLink     = "https://wa.me/4915112345670?text=Hello%20Ada%2C%201%2B1"
	tgLink     = "https://t.me/shop_bot?start=ABCD-1234"
)

// call calls the simulator's own API, expects a status, and returns the answer.
func (w *runningSimulator) call(status int, method, path, body string) map[string]any {
	w.t.Helper()
	got, answer := w.raw(method, path, body, nil)
	w.Expect(got).To(Equal(status), "%s %s: %v", method, path, answer)
	return answer
}

func (w *runningSimulator) raw(method, path, body string, header http.Header) (int, map[string]any) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body))
	w.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", "application/json")
	maps.Copy(request.Header, header)
	response, err := http.DefaultClient.Do(request)
	w.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	w.Expect(response.Header.Get("Phoneproof-Simulated")).To(Equal("true"))
	var answer map[string]any
	content, err := io.ReadAll(response.Body)
	w.Expect(err).NotTo(HaveOccurred())
	if len(bytes.TrimSpace(content)) > 0 {
		w.Expect(json.Unmarshal(content, &answer)).To(Succeed(), string(content))
	}
	return response.StatusCode, answer
}

// posted is a webhook that a callback got.
type posted struct {
	header http.Header
	body   []byte
}

// callback is a server that the platforms post to.
type callback struct {
	*httptest.Server

	mu     sync.Mutex
	got    []posted
	answer []int // the statuses to answer, the last one from then on
}

func newCallback(t *testing.T, answers ...int) *callback {
	t.Helper()
	c := &callback{answer: answers}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got = append(c.got, posted{r.Header, body})
	status := http.StatusOK
	if len(c.answer) > 0 {
		status = c.answer[min(len(c.got), len(c.answer))-1]
	}
	w.WriteHeader(status)
}

func (c *callback) all() []posted {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]posted(nil), c.got...)
}

// text returns everything that was posted.
func (c *callback) text() string {
	var all strings.Builder
	for _, p := range c.all() {
		all.Write(p.body)
	}
	return all.String()
}

// registered is a simulator with an account whose webhooks go to a callback.
func registered(t *testing.T, answers ...int) (*runningSimulator, *callback) {
	t.Helper()
	w, c := startSimulator(t, Options{}), newCallback(t, answers...)
	w.Expect(w.sim.AddWhatsApp(WhatsAppAccount{PhoneNumberID: "1234567890", Number: "+4915112345670", AppSecret: credential, Callback: c.URL})).To(Succeed())
	w.Expect(w.sim.AddTelegram(TelegramAccount{Username: "shop_bot", Callback: c.URL, Secret: "the-secret"})).To(Succeed())
	return w, c
}

// line returns the newest message of a user's newest chat.
func (w *runningSimulator) line(user string) map[string]any {
	w.t.Helper()
	chats := w.call(http.StatusOK, http.MethodGet, "/sim/users/"+user+"/chats", "")["chats"].([]any)
	w.Expect(chats).NotTo(BeEmpty())
	lines := chats[len(chats)-1].(map[string]any)["messages"].([]any)
	w.Expect(lines).NotTo(BeEmpty())
	return lines[len(lines)-1].(map[string]any)
}
