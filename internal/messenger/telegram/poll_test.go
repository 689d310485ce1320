package telegram

import (
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

func TestPoll_verifies(t *testing.T) {
	bubble(t, PollerOptions{}, func(p *polling) {
		id := p.initiate("golden").Request.ID
		p.start()
		p.Expect(p.reported()).To(BeEmpty(), "the first poll waits")
		p.api.arrive(7, p.update(7, user, "/start "+goldenCode))
		p.api.arrive(8, p.contactLater(8, user, claimed, 5*time.Minute))
		p.pass(time.Minute)
		p.Expect(p.phase(id)).To(Equal(verification.Verified))
		p.Expect(p.api.waiting()).To(BeZero(), "confirmed")
		p.Expect(p.reported()).To(Equal([]PollState{PollRunning}))
		p.Expect(p.asked()[:3]).To(Equal([]int64{0, 0, 9}))
		p.Expect(p.stop()).To(BeZero(), "in the middle of a poll")
		p.stop = nil
	})
}

// TestPoll_offsetOnlyAfterTheStore: while the store is away nothing is confirmed by any poller; afterwards nothing is lost.
func TestPoll_offsetOnlyAfterTheStore(t *testing.T) {
	bubble(t, PollerOptions{}, func(p *polling) {
		id := p.initiate("golden").Request.ID
		p.backend.Fail(errors.New("away"))
		p.api.arrive(7, p.update(7, user, "/start "+goldenCode))
		p.api.arrive(8, p.contactLater(8, user, claimed, 5*time.Minute))
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

// TestPoll_oneChatCannotHoldUpAll: a prompt that cannot be sent is given up after some tries, counts for its sender, and delays no
// message of others for as long as Telegram asks to wait with that chat.
func TestPoll_oneChatCannotHoldUpAll(t *testing.T) {
	for _, answer := range []string{"error_500", "error_429"} {
		t.Run(answer, func(t *testing.T) {
			bubble(t, PollerOptions{}, func(p *polling) {
				id := p.initiate("golden").Request.ID
				p.initiate("other")
				p.api.failing(func(method string, body []byte) string {
					if method == "sendMessage" && strings.Contains(string(body), `"chat_id":42,`) {
						return answer
					}
					return ""
				})
				now := time.Now()
				p.channel.clock = clocktesting.NewFakePassiveClock(now)
				sender := senderBindings(p.settings, stranger, now)[0]
				for range messenger.MaxPerSender - 1 {
					p.channel.senders.Count(now, sender)
				}
				p.api.arrive(7, p.update(7, stranger, "/start "+otherCode))
				p.api.arrive(8, p.update(8, user, "/start "+goldenCode))
				p.start()
				p.api.arrive(9, p.contactLater(9, user, claimed, 5*time.Minute))
				p.pass(minBackoff)
				p.Expect(p.phase(id)).To(Equal(verification.Verified), "fetched after the first backoff")
				p.Expect(p.channel.senders.Exceeded(now, sender)).To(BeFalse(), "a message that is tried again does not count")
				p.pass(2 * maxBackoff)
				p.Expect(p.outcomes()[messenger.OutcomePromptFailed]).To(BeEquivalentTo(maxPrompts))
				p.Expect(p.api.waiting()).To(BeZero())
				p.Expect(p.channel.senders.Exceeded(now, sender)).To(BeTrue(), "one that is given up does")
			})
		})
	}
}

// TestPoll_onlyWhereItIsPermitted: until the webhook and the owner of the token are known, nothing is fetched.
func TestPoll_onlyWhereItIsPermitted(t *testing.T) {
	var permitted atomic.Bool
	options := PollerOptions{Permitted: func(a *settings.Telegram) bool {
		return permitted.Load() && string(a.BotToken.Current()) == botToken
	}}
	bubble(t, options, func(p *polling) {
		wake := make(chan struct{}, 1)
		p.poller.Wake = wake
		p.api.arrive(7, p.update(7, user, "hello"))
		p.start()
		p.pass(10 * time.Minute)
		p.Expect(p.reported()).To(Equal([]PollState{PollIdle}))
		p.Expect(p.api.all()).To(BeEmpty())
		permitted.Store(true)
		wake <- struct{}{}
		synctest.Wait()
		p.Expect(p.api.waiting()).To(BeZero(), "at once, and confirmed")
		p.pass(time.Minute)
		p.Expect(p.reported()).To(Equal([]PollState{PollIdle, PollRunning}))
		permitted.Store(false)
		p.pass(defaultPollTimeout)
		n := len(p.asked())
		p.pass(time.Hour)
		p.Expect(p.asked()).To(HaveLen(n))
		p.Expect(p.reported()).To(Equal([]PollState{PollIdle, PollRunning, PollIdle}))
	})
}

// TestPoll_webhookSetMeanwhile: getUpdates answers 409 as long as there is one.
func TestPoll_webhookSetMeanwhile(t *testing.T) {
	bubble(t, PollerOptions{}, func(p *polling) {
		p.start()
		p.pass(time.Minute)
		p.api.hook("https://elsewhere.example/")
		p.pass(5 * time.Minute)
		calls := p.api.got("getUpdates")
		p.Expect(calls[len(calls)-1]).To(ContainSubstring(`"timeout":1,`), "the end shows at once, not after a long poll")
		p.api.hook("")
		p.pass(2 * maxBackoff)
		p.Expect(p.reported()).To(Equal([]PollState{PollRunning, PollConflict, PollRunning}))
	})
}

func TestPoll_failures(t *testing.T) {
	for answer, want := range map[string]PollState{
		"error_409_poller": PollConflict, "error_401": PollCredentials, "error_404": PollCredentials, "error_500": PollFailing,
		"error_429": PollFailing, "error_400": PollFailing,
	} {
		t.Run(answer, func(t *testing.T) {
			bubble(t, PollerOptions{}, func(p *polling) {
				p.api.failing(always("getUpdates", answer))
				p.start()
				p.pass(time.Hour)
				p.Expect(p.reported()).To(Equal([]PollState{want}), "reported once")
				p.Expect(len(p.asked())).To(And(BeNumerically(">", 50), BeNumerically("<", 200)), "tries go on, at most twice a minute")
				p.api.failing(nil)
				p.pass(2 * maxBackoff)
				p.Expect(p.reported()).To(Equal([]PollState{want, PollRunning}))
			})
		})
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
