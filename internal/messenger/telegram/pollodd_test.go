package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/verification"
)

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

// TestPoll_oddUpdates: repeated and unusable ids, and updates that are none, among good ones.
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

// brittle panics when a request is updated.
type brittle struct {
	verification.Store

	id string
}

func (b brittle) Update(
	ctx context.Context, id string, mutate func(*verification.Request, time.Time) error,
) (verification.Request, error) {
	if id == b.id {
		panic("canaryvalue")
	}
	return b.Store.Update(ctx, id, mutate)
}

// TestPoll_anUpdateThatMeetsABug: it ends neither the process nor what comes after it.
func TestPoll_anUpdateThatMeetsABug(t *testing.T) {
	bubble(t, PollerOptions{}, func(p *polling) {
		bad, good := p.initiate("other"), p.initiate("golden")
		store := brittle{p.backend.Open(projectName), bad.Request.ID}
		p.channel.service = verification.NewService(verification.NewCodeSpace(projectName), store)
		p.api.arrive(7, p.update(7, stranger, "/start "+bad.Code.Grouped()))
		p.api.arrive(8, p.update(8, user, "/start "+goldenCode))
		p.api.arrive(9, p.contactUpdate(9, user, claimed))
		p.start()
		p.pass(time.Second)
		p.Expect(p.phase(good.Request.ID)).To(Equal(verification.Verified))
		p.Expect(p.api.waiting()).To(BeZero())
		p.Expect(p.outcomes()).To(HaveKeyWithValue(messenger.OutcomePanicked, 1.0))
		p.Expect(string(p.logs.Contents())).NotTo(ContainSubstring("canaryvalue"))
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

// TestPoll_twoPollers: Telegram ends the older of two polls with a 409. Both go on, slower, and nothing is lost.
func TestPoll_twoPollers(t *testing.T) {
	bubble(t, PollerOptions{}, func(p *polling) {
		id := p.initiate("golden").Request.ID
		second := &polling{world: p.world, poller: p.another().NewPoller(p.poller.PollerOptions)}
		p.start()
		second.start()
		p.pass(time.Minute)
		p.Expect(p.reported()).To(ContainElement(PollConflict))
		p.api.arrive(7, p.update(7, user, "/start "+goldenCode))
		p.pass(time.Minute)
		p.api.arrive(8, p.contactUpdate(8, user, claimed))
		p.pass(2 * time.Minute)
		p.Expect(p.phase(id)).To(Equal(verification.Verified))
		p.Expect(p.api.waiting()).To(BeZero())
		p.Expect(len(p.asked())).To(BeNumerically("<", 240), "no hot loop")
		second.stop()
	})
}

// TestPoll_overHTTP is the whole way, with a real server for the Bot API.
func TestPoll_overHTTP(t *testing.T) {
	w := newWorld(t, true)
	server := httptest.NewServer(w.api)
	defer server.Close()
	client, err := NewClient(ClientOptions{BaseURL: server.URL})
	w.Expect(err).NotTo(HaveOccurred())
	w.channel.client = client
	w.settings.Telegram.Polling = true
	id := w.initiate("golden").Request.ID
	w.api.arrive(7, w.update(7, user, "/start "+goldenCode))
	polling, stopPolling := context.WithCancel(t.Context())
	replying, stopReplying := context.WithCancel(t.Context())
	var poller, replies sync.WaitGroup
	replies.Go(func() { _ = w.channel.Start(replying) })
	poller.Go(func() { _ = w.channel.NewPoller(PollerOptions{Timeout: time.Second}).Start(polling) })
	// A user shares the contact after the question: what was sent a second before it does not count.
	w.Eventually(func() int { return len(w.api.got("sendMessage")) }).WithTimeout(time.Minute).Should(Equal(1))
	w.api.arrive(8, w.contactUpdate(8, user, claimed))
	w.Eventually(func() verification.Phase { return w.phase(id) }).WithTimeout(time.Minute).Should(Equal(verification.Verified))
	stopPolling()
	poller.Wait() // it may be about to hand over the reply
	stopReplying()
	replies.Wait()
	w.Expect(w.api.got("sendMessage")).To(HaveLen(2), "the prompt, and the reply that waited when the end came")
}
