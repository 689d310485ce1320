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

// enablePolling edits the settings so that updates are polled.
func (w *scriptedAccount) enablePolling() {
	w.edit(func(s *settings.Settings) { s.Telegram.Polling = true })
}

func (w *scriptedAccount) polling() *polling { return w.platform.messenger.(*botAPI).polling }

func TestPolling_removesOurWebhookFirst(t *testing.T) {
	w := newTelegramAccount(t)
	w.expectTrue(verifyv1.ReasonRegistered)
	w.Expect(w.polling().isAllowed(w.settings.Telegram)).To(BeFalse())
	w.enablePolling()
	w.expectTrue(verifyv1.ReasonPolling)
	w.Expect(w.platform.callback).To(BeEmpty())
	w.Expect(w.remembered).To(Equal([]string{botURL, ""}))
	w.Expect(w.polling().isAllowed(w.settings.Telegram)).To(BeTrue())
	w.Expect(w.polling().wake).To(HaveLen(1))

	w.edit(func(s *settings.Settings) { s.Telegram.Polling = false })
	w.expectTrue(verifyv1.ReasonRegistered)
	w.Expect(w.polling().isAllowed(w.settings.Telegram)).To(BeFalse())
	w.Expect(w.platform.callback).To(Equal(botURL))
}

func TestPolling_keepsForeignWebhook(t *testing.T) {
	w := newTelegramAccount(t)
	w.enablePolling()
	w.expectTrue(verifyv1.ReasonPolling)
	w.platform.callback = foreignURL // another program sets one while we poll
	w.expectFalse(verifyv1.ReasonCallbackTaken)
	w.Expect(w.polling().isAllowed(w.settings.Telegram)).To(BeFalse())
	w.Expect(w.platform.callback).To(Equal(foreignURL))
	w.edit(func(s *settings.Settings) { s.Telegram.TakeOver = true })
	w.expectTrue(verifyv1.ReasonPolling)
	w.Expect(w.platform.callback).To(BeEmpty())
	w.Expect(w.polling().isAllowed(w.settings.Telegram)).To(BeTrue())
}

// TestPolling_onlyTheBotsOwnToken: a token may be used for polling after it was checked; that allows no other token.
func TestPolling_onlyTheBotsOwnToken(t *testing.T) {
	w := newTelegramAccount(t)
	w.enablePolling()
	w.expectTrue(verifyv1.ReasonPolling)
	w.edit(func(s *settings.Settings) { s.Telegram.BotToken = settings.NewSecret([]byte("77:another")) })
	w.Expect(w.polling().isAllowed(w.settings.Telegram)).To(BeFalse(), "not yet")
	w.platform.seen.mismatch = "why"
	w.expectFalse(verifyv1.ReasonAccountMismatch)
	w.Expect(w.polling().isAllowed(w.settings.Telegram)).To(BeFalse())
	w.platform.seen.mismatch = ""
	w.expectTrue(verifyv1.ReasonPolling)
	w.Expect(w.polling().isAllowed(w.settings.Telegram)).To(BeTrue())
	for name, change := range map[string]func(*settings.Settings){
		"the secret is removed":    func(s *settings.Settings) { s.Telegram.BotToken = settings.Secret{} },
		"the messenger is removed": func(s *settings.Settings) { s.Telegram = nil },
	} {
		before := w.settings
		w.edit(change)
		w.reconcile()
		w.Expect(w.polling().isAllowed(before.Telegram)).To(BeFalse(), name)
		w.settings = before
		w.reconcile()
		w.Expect(w.polling().isAllowed(before.Telegram)).To(BeTrue(), name)
	}
}

// TestPolling_platformAway: polling stays allowed, because the poller notices the outage itself.
func TestPolling_platformAway(t *testing.T) {
	w := newTelegramAccount(t)
	w.enablePolling()
	w.expectTrue(verifyv1.ReasonPolling)
	w.platform.err = errAway
	for range 2 * patience {
		w.reconcile()
	}
	w.expectFalse(verifyv1.ReasonPlatformUnreachable)
	w.Expect(w.polling().isAllowed(w.settings.Telegram)).To(BeTrue())
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
			p.recordState(telegram.PollRunning, nil)
			clock.Step(time.Hour)
			p.recordState(state, nil)
			says, wait := p.currentVerdict()
			g.Expect(says.reason).To(Equal(verifyv1.ReasonPolling), "at first it may be a change of leaders")
			if reason == verifyv1.ReasonPolling {
				g.Expect(wait).To(BeZero())
				return
			}
			delay := pollProblemDelay
			if state == telegram.PollConflict {
				delay = time.Minute
			}
			g.Expect(wait).To(Equal(delay))
			clock.Step(delay / 2)
			p.recordState(state, nil)
			_, wait = p.currentVerdict()
			g.Expect(wait).To(Equal(delay/2), "an unchanged state is not recorded")
			clock.Step(delay / 2)
			says, _ = p.currentVerdict()
			g.Expect(says.status).To(Equal(metav1.ConditionFalse))
			g.Expect(says.reason).To(Equal(reason))
			p.recordState(telegram.PollRunning, nil)
			if state == telegram.PollConflict {
				clock.Step(delay)
			}
			says, _ = p.currentVerdict()
			g.Expect(says.reason).To(Equal(verifyv1.ReasonPolling))
		})
	}
}

// A project that is deleted and applied again finds its own former pods fetching, for up to a minute.
func TestPolling_conflictFromTheStart(t *testing.T) {
	g := NewWithT(t)
	clock := clocktesting.NewFakeClock(begin)
	p := newPolling(clock)
	p.recordState(telegram.PollConflict, nil)
	clock.Step(time.Minute - 1)
	says, wait := p.currentVerdict()
	g.Expect([]any{says.status, says.reason, wait}).To(Equal([]any{metav1.ConditionUnknown, verifyv1.ReasonRegistering, time.Duration(1)}))
	clock.Step(1)
	says, _ = p.currentVerdict()
	g.Expect(says.reason).To(Equal(verifyv1.ReasonCallbackTaken))
}

// Two programs that fetch in turn see a 409 again and again, and updates between.
func TestPolling_conflictThatComesAgain(t *testing.T) {
	g := NewWithT(t)
	clock := clocktesting.NewFakeClock(begin)
	p := newPolling(clock)
	expect := func(state telegram.PollState, after time.Duration, reason string, wait time.Duration) {
		t.Helper()
		p.recordState(state, nil)
		clock.Step(after)
		says, again := p.currentVerdict()
		g.Expect([]any{says.reason, again}).To(Equal([]any{reason, wait}))
	}
	const polling, taken = verifyv1.ReasonPolling, verifyv1.ReasonCallbackTaken
	expect(telegram.PollRunning, 50*time.Second, polling, 0)
	expect(telegram.PollConflict, 5*time.Second, polling, 55*time.Second)
	expect(telegram.PollRunning, 50*time.Second, polling, 0)
	expect(telegram.PollConflict, 5*time.Second, taken, 0) // a minute with what is between
	expect(telegram.PollRunning, 50*time.Second, taken, 10*time.Second)
	expect(telegram.PollRunning, 10*time.Second, polling, 0)
	expect(telegram.PollConflict, 5*time.Second, polling, 55*time.Second) // another one
	expect(telegram.PollIdle, time.Second, polling, 0)
	expect(telegram.PollConflict, 56*time.Second, polling, 4*time.Second) // with another token
}

func TestPolling_notifiesTheController(t *testing.T) {
	w := newTelegramAccount(t)
	w.enablePolling()
	w.expectTrue(verifyv1.ReasonPolling)
	w.polling().recordState(telegram.PollRunning, nil)
	w.polling().recordState(telegram.PollConflict, nil)
	w.Expect(w.polling().changes).To(HaveLen(1))
	w.Expect(w.expectTrue(verifyv1.ReasonPolling)).To(Equal(pollConflictDelay))
	w.clock.Step(pollConflictDelay)
	w.expectFalse(verifyv1.ReasonCallbackTaken)
	w.Expect(w.polling().isAllowed(w.settings.Telegram)).To(BeTrue(), "polling goes on")
}
