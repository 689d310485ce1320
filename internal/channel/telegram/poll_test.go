package telegram

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

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
