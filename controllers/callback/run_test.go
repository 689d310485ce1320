package callback

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/messenger/telegram"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// inBubble runs the loop with a fake clock. The loop is blocked after synctest.Wait, so a test may read what it wrote without
// locks.
func inBubble(t *testing.T, test func(w *scriptedAccount, stop func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newTelegramAccount(t)
		w.platform.messenger = newBotAPI(nil, clock.RealClock{})
		w.controller.Clock = clock.RealClock{}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.controller.Run(ctx) }()
		synctest.Wait()
		test(w, stop)
		stop()
		w.Expect(<-ended).To(Succeed())
	})
}

// advanceTime lets the loop run for that long.
func (w *scriptedAccount) advanceTime(d time.Duration) {
	w.turn.Lock()
	w.turn.Unlock() //nolint:staticcheck // only the order counts
	<-time.After(d)
	synctest.Wait()
}

func TestRun_looksSeveralTimesAnHour(t *testing.T) {
	inBubble(t, func(w *scriptedAccount, _ func()) {
		w.Expect(w.platform.calls).To(Equal([]string{"observe", "register"}))
		w.advanceTime(recheckDelay)
		w.Expect(w.platform.calls).To(HaveLen(3))
		w.advanceTime(10 * time.Hour)
		w.Expect(len(w.platform.calls) - 3).To(BeNumerically("~", 45, 6))
		w.platform.callback = ""
		w.advanceTime(checkInterval)
		w.Expect(w.platform.callback).To(Equal(botURL), "restored")
	})
}

func TestRun_reactsToSettingsAtOnce(t *testing.T) {
	inBubble(t, func(w *scriptedAccount, _ func()) {
		w.advanceTime(time.Minute + time.Second)
		w.edit(func(s *settings.Settings) { s.BaseURL = "https://new.example.com" })
		synctest.Wait()
		w.Expect(w.platform.callback).To(HavePrefix("https://new.example.com/"))
		before := len(w.platform.calls)
		for range 1000 {
			w.edit(func(*settings.Settings) {})
			w.advanceTime(10 * time.Millisecond)
		}
		w.Expect(len(w.platform.calls)-before).To(BeNumerically("~", 10, 1), "but not more often than that")
	})
}

func TestRun_backsOff(t *testing.T) {
	inBubble(t, func(w *scriptedAccount, _ func()) {
		w.platform.err = errAway
		w.platform.calls = nil
		w.advanceTime(24 * time.Hour)
		w.Expect(len(w.platform.calls)).To(BeNumerically("~", 24*60/9, 40))
		w.platform.err = telegram.ErrCredentials
		w.advanceTime(maxRetry)
		w.platform.err = nil
		w.edit(func(s *settings.Settings) { s.Telegram.BotToken = settings.NewSecret([]byte("77:replaced")) })
		w.advanceTime(minGap)
		w.Expect(w.conditions[len(w.conditions)-1].Reason).To(Equal(verifyv1.ReasonRegistered), "a fix counts at once")
	})
}

// TestRun_ignoresItsOwnStatus: only the deletion of the project counts.
func TestRun_ignoresItsOwnStatus(t *testing.T) {
	inBubble(t, func(w *scriptedAccount, _ func()) {
		w.advanceTime(2 * time.Minute)
		before := len(w.platform.calls)
		for range 100 {
			w.projects.replace(w.projects.Project().DeepCopy())
			synctest.Wait()
		}
		w.Expect(w.platform.calls).To(HaveLen(before))
		w.projects.replace(nil)
		synctest.Wait()
		w.Expect(w.platform.callback).To(BeEmpty())
		w.setStatus("")
		w.advanceTime(minGap)
		w.Expect(w.platform.callback).To(Equal(botURL), "it was registered again")
	})
}

func TestRun_changesOfThePoller(t *testing.T) {
	inBubble(t, func(w *scriptedAccount, _ func()) {
		w.enablePolling()
		w.advanceTime(time.Minute)
		before := len(w.platform.calls)
		for range 100 { // two pollers that end each other
			w.polling().recordState(telegram.PollConflict, nil)
			w.advanceTime(time.Second)
			w.polling().recordState(telegram.PollRunning, nil)
			w.advanceTime(time.Second)
		}
		w.Expect(len(w.platform.calls) - before).To(BeNumerically("<=", 200/int(pollGap/time.Second)+2))
		w.polling().recordState(telegram.PollConflict, nil)
		w.advanceTime(pollGap + pollConflictDelay)
		w.Expect(w.conditions[len(w.conditions)-1].Reason).To(Equal(verifyv1.ReasonCallbackTaken))
	})
}

func TestRun_endsAtOnce(t *testing.T) {
	for name, before := range map[string]func(*scriptedAccount){
		"waiting":                func(*scriptedAccount) {},
		"pausing after a change": func(w *scriptedAccount) { w.edit(func(*settings.Settings) {}); w.edit(func(*settings.Settings) {}) },
		"backing off":            func(w *scriptedAccount) { w.platform.err = errAway; w.advanceTime(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *scriptedAccount, stop func()) {
				before(w)
				synctest.Wait()
				began := time.Now()
				stop()
				synctest.Wait()
				w.Expect(time.Now()).To(Equal(began))
			})
		})
	}
}
