package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// polling is a world whose updates are fetched, in a bubble of synctest.
type polling struct {
	*world

	poller *Poller
	mu     sync.Mutex
	states []PollState
	stop   func() time.Duration
}

func newPolling(t *testing.T, o PollerOptions) *polling {
	t.Helper()
	p := &polling{world: newWorld(t, true)}
	p.settings.Telegram.Polling = true
	o.Report = func(s PollState, _ error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.states = append(p.states, s)
	}
	p.poller = p.channel.NewPoller(o)
	return p
}

// start runs the poller until stop or the end of the test. stop returns how long it took to end.
func (p *polling) start() {
	ctx, cancel := context.WithCancel(p.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.poller.Start(ctx) }()
	p.stop = func() time.Duration {
		began := time.Now()
		cancel()
		p.Expect(<-ended).To(Succeed())
		return time.Since(began)
	}
	synctest.Wait()
}

func (p *polling) reported() []PollState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.states)
}

// pass lets time go by.
func (p *polling) pass(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

// asked returns the offsets of all polls.
func (p *polling) asked() []int64 {
	var offsets []int64
	for _, body := range p.api.got("getUpdates") {
		var in getUpdates
		p.Expect(json.Unmarshal(body, &in)).To(Succeed())
		offsets = append(offsets, in.Offset)
	}
	return offsets
}

func bubble(t *testing.T, o PollerOptions, test func(*polling)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPolling(t, o)
		test(p)
		if p.stop != nil {
			p.stop()
		}
	})
}

func TestPoll_verifies(t *testing.T) {
	bubble(t, PollerOptions{}, func(p *polling) {
		id := p.initiate("golden").Request.ID
		p.start()
		p.Expect(p.reported()).To(BeEmpty(), "the first poll waits")
		p.api.arrive(7, p.update(7, user, "/start "+goldenCode))
		p.api.arrive(8, p.contactUpdate(8, user, claimed))
		p.pass(time.Minute)
		p.Expect(p.phase(id)).To(Equal(verification.Verified))
		p.Expect(p.api.waiting()).To(BeZero(), "confirmed")
		p.Expect(p.reported()).To(Equal([]PollState{PollRunning}))
		p.Expect(p.asked()[:3]).To(Equal([]int64{0, 0, 9}))
		p.Expect(p.api.got("deleteWebhook")).To(BeEmpty())
		p.Expect(p.stop()).To(BeZero(), "in the middle of a poll")
		p.stop = nil
	})
}

// TestPoll_offsetOnlyAfterTheStore: while the store is away nothing is confirmed, whoever polls; afterwards nothing is lost.
func TestPoll_offsetOnlyAfterTheStore(t *testing.T) {
	bubble(t, PollerOptions{}, func(p *polling) {
		id := p.initiate("golden").Request.ID
		p.backend.Fail(errors.New("away"))
		p.api.arrive(7, p.update(7, user, "/start "+goldenCode))
		p.api.arrive(8, p.contactUpdate(8, user, claimed))
		p.start()
		p.pass(time.Minute)
		p.Expect(p.reported()).To(Equal([]PollState{PollHeld}))
		p.Expect(len(p.asked())).To(And(BeNumerically(">", 3), BeNumerically("<", 20)), "it backs off")
		p.stop()
		p.poller = p.channel.NewPoller(p.poller.PollerOptions)
		p.start()
		p.pass(time.Minute)
		p.Expect(p.asked()).To(HaveEach(BeZero()))
		p.Expect(p.api.waiting()).To(Equal(2))
		p.Expect(p.phaseWhenBack(id)).To(Equal(verification.Pending))
		p.pass(2 * maxBackoff)
		p.Expect(p.phase(id)).To(Equal(verification.Verified))
		p.Expect(p.api.waiting()).To(BeZero())
		p.Expect(p.reported()).To(Equal([]PollState{PollHeld, PollHeld, PollRunning}))
	})
}

func (p *polling) phaseWhenBack(id string) verification.Phase {
	p.backend.Fail(nil)
	return p.phase(id)
}

// TestPoll_killedInABatch: the poller ends with the second of three updates not done; the next one goes on with it.
func TestPoll_killedInABatch(t *testing.T) {
	bubble(t, PollerOptions{}, func(p *polling) {
		id := p.initiate("golden").Request.ID
		p.api.arrive(7, p.update(7, stranger, "/start "+goldenCode))
		p.api.arrive(8, p.update(8, user, "/start "+goldenCode))
		p.api.arrive(9, p.contactUpdate(9, user, claimed))
		p.api.failing(func(method string, body []byte) string {
			if method == "sendMessage" && strings.Contains(string(body), strconv.FormatInt(user, 10)) {
				return "error_500"
			}
			return ""
		})
		p.start()
		p.pass(100 * time.Millisecond)
		p.Expect(p.reported()).To(Equal([]PollState{PollHeld}))
		p.stop()
		p.Expect(p.asked()).To(Equal([]int64{0}))
		p.api.failing(nil)
		p.poller = p.channel.NewPoller(p.poller.PollerOptions)
		p.start()
		p.pass(time.Second)
		p.Expect(p.phase(id)).To(Equal(verification.Verified))
		p.Expect(p.asked()).To(Equal([]int64{0, 0, 10}), "a new one asks for everything unconfirmed")
		p.Expect(p.stop()).To(BeZero())
		p.stop = nil
	})
}

// TestPoll_oneChatCannotHoldUpAll: a prompt that cannot be sent is given up after some tries.
func TestPoll_oneChatCannotHoldUpAll(t *testing.T) {
	bubble(t, PollerOptions{}, func(p *polling) {
		id := p.initiate("golden").Request.ID
		p.api.failing(func(method string, body []byte) string {
			if method == "sendMessage" && strings.Contains(string(body), `"chat_id":42,`) {
				return "error_500"
			}
			return ""
		})
		p.api.arrive(7, p.update(7, stranger, "/start "+goldenCode))
		p.api.arrive(8, p.update(8, user, "/start "+goldenCode))
		p.api.arrive(9, p.contactUpdate(9, user, claimed))
		p.start()
		p.pass(2 * maxBackoff)
		p.Expect(p.phase(id)).To(Equal(verification.Verified))
		p.Expect(p.outcomes()[failedPrompt]).To(BeEquivalentTo(maxPrompts))
		p.Expect(p.api.waiting()).To(BeZero())
	})
}

func TestPoll_webhook(t *testing.T) {
	const url = "https://verify.example.com/hooks/telegram"
	for name, row := range map[string]struct {
		may  func(string) bool
		want bool
	}{
		"nobody to ask": {nil, false},
		"not ours":      {func(u string) bool { return u != url }, false},
		"ours":          {func(u string) bool { return u == url }, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, PollerOptions{MayDeleteWebhook: row.may}, func(p *polling) {
				p.api.webhook = url
				p.api.arrive(7, p.update(7, user, "hello"))
				p.start()
				p.pass(10 * time.Minute)
				if !row.want {
					p.Expect(p.reported()).To(Equal([]PollState{PollCallbackTaken}))
					p.Expect(p.api.got("deleteWebhook")).To(BeEmpty())
					p.Expect(p.asked()).To(BeEmpty())
					p.Expect(p.api.waiting()).To(Equal(1))
					return
				}
				p.Expect(p.reported()).To(Equal([]PollState{PollRunning}))
				p.Expect(p.api.got("deleteWebhook")).To(HaveLen(1))
				p.Expect(p.api.got("deleteWebhook")[0]).To(MatchJSON(golden(t, "out/deleteWebhook")))
				p.Expect(p.api.waiting()).To(BeZero(), "what was waiting was fetched")
			})
		})
	}
}

// TestPoll_webhookSetMeanwhile: getUpdates answers 409, so the webhook is looked at again.
func TestPoll_webhookSetMeanwhile(t *testing.T) {
	bubble(t, PollerOptions{}, func(p *polling) {
		p.start()
		p.pass(time.Minute)
		p.api.mu.Lock()
		p.api.webhook = "https://elsewhere.example/"
		p.api.mu.Unlock()
		p.pass(5 * time.Minute)
		p.Expect(p.reported()).To(Equal([]PollState{PollRunning, PollConflict, PollCallbackTaken}))
	})
}

func TestPoll_failures(t *testing.T) {
	for answer, want := range map[string]PollState{
		"error_409_poller": PollConflict, "error_401": PollCredentials, "error_404": PollCredentials, "error_500": PollUnavailable,
		"error_429": PollUnavailable,
	} {
		for _, method := range []string{"getUpdates", "getWebhookInfo", "deleteWebhook"} {
			t.Run(answer+" "+method, func(t *testing.T) {
				bubble(t, PollerOptions{MayDeleteWebhook: func(string) bool { return true }}, func(p *polling) {
					p.api.webhook = map[bool]string{true: "https://ours.example/"}[method == "deleteWebhook"]
					p.api.failing(always(method, answer))
					p.start()
					p.pass(time.Hour)
					p.Expect(p.reported()).To(Equal([]PollState{want}), "reported once")
					p.Expect(len(p.api.got(method))).To(And(BeNumerically(">", 50), BeNumerically("<", 200)), "tries go on, at most twice a minute")
					p.api.failing(nil)
					p.pass(2 * maxBackoff)
					p.Expect(p.reported()).To(Equal([]PollState{want, PollRunning}))
				})
			})
		}
	}
}

// TestPoll_waitsAsLongAsTelegramAsks is 429 with parameters.retry_after.
func TestPoll_waitsAsLongAsTelegramAsks(t *testing.T) {
	bubble(t, PollerOptions{}, func(p *polling) {
		p.api.failing(always("getUpdates", "error_429"))
		p.start()
		p.Expect(p.asked()).To(HaveLen(1))
		p.pass(7*time.Second - time.Millisecond)
		p.Expect(p.asked()).To(HaveLen(1))
		p.pass(time.Millisecond)
		p.Expect(p.asked()).To(HaveLen(2))
	})
}

func TestPoll_onePoller(t *testing.T) {
	bubble(t, PollerOptions{}, func(p *polling) {
		p.start()
		p.Expect(p.poller.Start(t.Context())).To(MatchError(errPolling))
		p.stop()
		p.start()
		p.Expect(p.asked()).To(HaveLen(2), "the next term may")
	})
}

func TestPoll_followsTheSettings(t *testing.T) {
	bubble(t, PollerOptions{}, func(p *polling) {
		off := *p.settings
		off.Telegram = nil
		on := p.settings
		p.replaced.Store(&off)
		p.start()
		p.pass(time.Hour)
		p.Expect(p.api.all()).To(BeEmpty())
		p.Expect(p.reported()).To(Equal([]PollState{PollIdle}))
		p.replaced.Store(on)
		p.pass(idleWait)
		p.Expect(p.asked()).To(HaveLen(1))
		renewed := *on
		renewed.Telegram = account("5021:another_token_of_the_bot_987654321")
		renewed.Telegram.Polling = true
		p.replaced.Store(&renewed)
		p.pass(time.Minute)
		last := p.api.all()[len(p.api.all())-1]
		p.Expect(last.token).To(Equal("5021:another_token_of_the_bot_987654321"))
		p.Expect(p.api.got("getWebhookInfo")).To(HaveLen(2), "looked at for each token")
		hooked := renewed
		hooked.Telegram = account(botToken)
		p.replaced.Store(&hooked)
		p.pass(time.Minute)
		n := len(p.api.all())
		p.pass(time.Hour)
		p.Expect(p.api.all()).To(HaveLen(n))
		p.Expect(p.reported()).To(Equal([]PollState{PollIdle, PollRunning, PollIdle}))
	})
}

// TestPoll_idsThatStartAnew: after a quiet week Telegram's next id may be lower than the last.
func TestPoll_idsThatStartAnew(t *testing.T) {
	bubble(t, PollerOptions{}, func(p *polling) {
		id := p.initiate("golden").Request.ID
		p.api.arrive(900_000_000, p.update(900_000_000, user, "/start "+goldenCode))
		p.start()
		p.pass(2 * time.Minute)
		p.api.arrive(12, p.contactUpdate(12, user, claimed))
		p.pass(time.Minute)
		p.Expect(p.phase(id)).To(Equal(verification.Verified))
		p.Expect(p.api.waiting()).To(BeZero())
	})
}

// TestPoll_oddUpdates is row 40 and F37: repeated and unusable ids, and updates that are none, among good ones.
func TestPoll_oddUpdates(t *testing.T) {
	bubble(t, PollerOptions{}, func(p *polling) {
		id := p.initiate("golden").Request.ID
		start := p.update(7, user, "/start "+goldenCode)
		for _, odd := range [][]byte{
			[]byte(`"not an update"`), []byte(`null`), []byte(`{}`), []byte(`{"update_id":-3,"message":{}}`),
			[]byte(`{"update_id":99999999999999999999,"message":{}}`), []byte(`{"update_id":7,"message":{"from":1}}`), start, start,
			[]byte(`{"update_id":8,"edited_message":{}}`),
		} {
			p.api.arrive(7, odd)
		}
		p.api.arrive(9, p.contactUpdate(9, user, claimed))
		p.start()
		p.pass(time.Second)
		p.Expect(p.phase(id)).To(Equal(verification.Verified))
		p.Expect(p.api.waiting()).To(BeZero())
		p.Expect(p.reported()).To(Equal([]PollState{PollRunning}))
	})
}

// TestPoll_nothingToConfirm: a batch without any usable id comes again and again; it must not come in a hot loop.
func TestPoll_nothingToConfirm(t *testing.T) {
	bubble(t, PollerOptions{}, func(p *polling) {
		p.api.arrive(1<<60, []byte(`{"update_id":-3}`))
		p.start()
		p.pass(time.Hour)
		p.Expect(len(p.asked())).To(BeNumerically("<", 200))
		p.Expect(p.reported()).To(Equal([]PollState{PollUnavailable}))
	})
}

// TestPoll_answersAtOnce: a proxy that answers every poll at once, with nothing.
func TestPoll_answersAtOnce(t *testing.T) {
	bubble(t, PollerOptions{}, func(p *polling) {
		p.api.failing(always("getUpdates", "get_updates_none"))
		p.start()
		p.pass(time.Minute)
		p.Expect(len(p.asked())).To(BeNumerically("~", 60, 1))
	})
}

// TestPoll_tooLarge asks for less where an answer is over the limit.
func TestPoll_tooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var limits []int
		client, err := NewClient(ClientOptions{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/getWebhookInfo") {
				return reply200(`{"ok":true,"result":{"url":""}}`), nil
			}
			var in getUpdates
			g.Expect(json.NewDecoder(r.Body).Decode(&in)).To(Succeed())
			limits = append(limits, in.Limit)
			if in.Limit > 12 {
				return reply200(`{"ok":true,"result":["` + strings.Repeat("a", maxUpdatesBytes) + `"]}`), nil
			}
			return reply200(`{"ok":true,"result":[]}`), nil
		})})
		g.Expect(err).NotTo(HaveOccurred())
		w := newWorld(t, true)
		w.settings.Telegram.Polling = true
		c, err := New(Options{Settings: w.current, Service: w.service, Client: client})
		g.Expect(err).NotTo(HaveOccurred())
		p := c.NewPoller(PollerOptions{Timeout: time.Hour})
		g.Expect(p.Timeout).To(Equal(maxPollTimeout))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		g.Expect(p.Start(ctx)).To(Succeed())
		g.Expect(limits[:5]).To(Equal([]int{100, 50, 25, 12, 100}))
	})
}

func reply200(body string) *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

// TestPoll_keepsTheContext: Start ends at once in every state, also while it waits after a failure.
func TestPoll_keepsTheContext(t *testing.T) {
	for name, change := range map[string]func(*polling){
		"polling": func(*polling) {},
		"idle":    func(p *polling) { p.settings.Telegram.Polling = false },
		"failing": func(p *polling) { p.api.failing(always("getUpdates", "error_429")) },
		"held": func(p *polling) {
			p.api.arrive(1, p.update(1, user, "/start "+goldenCode))
			p.backend.Fail(errors.New("away"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, PollerOptions{}, func(p *polling) {
				change(p)
				p.start()
				p.pass(time.Second / 8)
				p.Expect(p.stop()).To(BeZero())
				p.stop = nil
			})
		})
	}
}
