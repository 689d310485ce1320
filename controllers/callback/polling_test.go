package callback

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/messenger/telegram"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// poll has the settings want updates to be fetched.
func (w *world) poll() {
	w.edit(func(s *settings.Settings) { s.Telegram.Polling = true })
}

func (w *world) polling() *polling { return w.platform.messenger.(*botAPI).polling }

func TestPolling_removesOurWebhookFirst(t *testing.T) {
	w := newTelegram(t)
	w.is(verifyv1.ReasonRegistered)
	w.Expect(w.polling().permitted(w.settings.Telegram)).To(BeFalse())
	w.poll()
	w.is(verifyv1.ReasonPolling)
	w.Expect(w.platform.callback).To(BeEmpty())
	w.Expect(w.remembered).To(Equal([]string{botURL, ""}))
	w.Expect(w.polling().permitted(w.settings.Telegram)).To(BeTrue())
	w.Expect(w.polling().wake).To(HaveLen(1))

	w.edit(func(s *settings.Settings) { s.Telegram.Polling = false })
	w.is(verifyv1.ReasonRegistered)
	w.Expect(w.polling().permitted(w.settings.Telegram)).To(BeFalse())
	w.Expect(w.platform.callback).To(Equal(botURL))
}

func TestPolling_leavesSomebodyElsesWebhook(t *testing.T) {
	w := newTelegram(t)
	w.poll()
	w.is(verifyv1.ReasonPolling)
	w.platform.callback = foreignURL // somebody sets one while we fetch
	w.isNot(verifyv1.ReasonCallbackTaken)
	w.Expect(w.polling().permitted(w.settings.Telegram)).To(BeFalse())
	w.Expect(w.platform.callback).To(Equal(foreignURL))
	w.edit(func(s *settings.Settings) { s.Telegram.TakeOver = true })
	w.is(verifyv1.ReasonPolling)
	w.Expect(w.platform.callback).To(BeEmpty())
	w.Expect(w.polling().permitted(w.settings.Telegram)).To(BeTrue())
}

// TestPolling_onlyTheBotsOwnToken: a token may be fetched with once it was looked at, and no other one by that.
func TestPolling_onlyTheBotsOwnToken(t *testing.T) {
	w := newTelegram(t)
	w.poll()
	w.is(verifyv1.ReasonPolling)
	w.edit(func(s *settings.Settings) { s.Telegram.BotToken = settings.NewSecret([]byte("77:another")) })
	w.Expect(w.polling().permitted(w.settings.Telegram)).To(BeFalse(), "not yet")
	w.platform.seen.mismatch = "why"
	w.isNot(verifyv1.ReasonAccountMismatch)
	w.Expect(w.polling().permitted(w.settings.Telegram)).To(BeFalse())
	w.platform.seen.mismatch = ""
	w.is(verifyv1.ReasonPolling)
	w.Expect(w.polling().permitted(w.settings.Telegram)).To(BeTrue())
	for name, change := range map[string]func(*settings.Settings){
		"the secret goes":    func(s *settings.Settings) { s.Telegram.BotToken = settings.Secret{} },
		"the messenger goes": func(s *settings.Settings) { s.Telegram = nil },
	} {
		before := w.settings
		w.edit(change)
		w.look()
		w.Expect(w.polling().permitted(before.Telegram)).To(BeFalse(), name)
		w.settings = before
		w.look()
		w.Expect(w.polling().permitted(before.Telegram)).To(BeTrue(), name)
	}
}

// TestPolling_platformAway: what was permitted stays so, because the poller finds out by itself.
func TestPolling_platformAway(t *testing.T) {
	w := newTelegram(t)
	w.poll()
	w.is(verifyv1.ReasonPolling)
	w.platform.err = errAway
	for range 2 * patience {
		w.look()
	}
	w.isNot(verifyv1.ReasonPlatformUnreachable)
	w.Expect(w.polling().permitted(w.settings.Telegram)).To(BeTrue())
}

func TestPolling_verdict(t *testing.T) {
	for state, reason := range map[telegram.PollState]string{
		telegram.PollIdle: verifyv1.ReasonPolling, telegram.PollRunning: verifyv1.ReasonPolling, telegram.PollHeld: verifyv1.ReasonPolling,
		telegram.PollConflict: verifyv1.ReasonCallbackTaken, telegram.PollCredentials: verifyv1.ReasonCredentialsRejected,
		telegram.PollUnavailable: verifyv1.ReasonPlatformUnreachable, telegram.PollFailing: verifyv1.ReasonPlatformFailing,
	} {
		t.Run(string(state), func(t *testing.T) {
			g := NewWithT(t)
			clock := clocktesting.NewFakeClock(begin)
			p := newPolling(clock)
			p.report(telegram.PollRunning, nil)
			clock.Step(time.Hour)
			p.report(state, nil)
			says, wait := p.verdict()
			g.Expect(says.reason).To(Equal(verifyv1.ReasonPolling), "at first it may be a change of leaders")
			if reason == verifyv1.ReasonPolling {
				g.Expect(wait).To(BeZero())
				return
			}
			g.Expect(wait).To(Equal(standing))
			clock.Step(standing / 2)
			p.report(state, nil)
			_, wait = p.verdict()
			g.Expect(wait).To(Equal(standing/2), "the same again is nothing new")
			clock.Step(standing / 2)
			says, _ = p.verdict()
			g.Expect(says.status).To(Equal(metav1.ConditionFalse))
			g.Expect(says.reason).To(Equal(reason))
			p.report(telegram.PollRunning, nil)
			says, _ = p.verdict()
			g.Expect(says.reason).To(Equal(verifyv1.ReasonPolling))
		})
	}
}

func TestPolling_tellsTheController(t *testing.T) {
	w := newTelegram(t)
	w.poll()
	w.is(verifyv1.ReasonPolling)
	w.polling().report(telegram.PollConflict, nil)
	w.Expect(w.polling().news).To(HaveLen(1))
	w.Expect(w.is(verifyv1.ReasonPolling)).To(Equal(standing))
	w.clock.Step(standing)
	w.isNot(verifyv1.ReasonCallbackTaken)
	w.Expect(w.polling().permitted(w.settings.Telegram)).To(BeTrue(), "it goes on trying")
}
