package callback

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/messenger/telegram"
)

// TestExamine_changesNothing gives each state of a platform its condition, by reads alone.
func TestExamine_changesNothing(t *testing.T) {
	const own = "https://verify.example.com"
	for name, c := range map[string]struct {
		whatsApp bool
		state    func(*scriptedAccount)
		stored   string
		status   metav1.ConditionStatus
		reason   string
	}{
		"our callback":      {state: func(w *scriptedAccount) { w.platform.callback = own + telegram.HookPath }, status: metav1.ConditionTrue, reason: verifyv1.ReasonRegistered},
		"no callback":       {state: func(*scriptedAccount) {}, status: metav1.ConditionUnknown, reason: verifyv1.ReasonRegistering},
		"a former one":      {state: func(w *scriptedAccount) { w.platform.callback = "https://old" }, stored: "https://old", status: metav1.ConditionUnknown, reason: verifyv1.ReasonRegistering},
		"another program's": {state: func(w *scriptedAccount) { w.platform.callback = "https://other" }, status: metav1.ConditionFalse, reason: verifyv1.ReasonCallbackTaken},
		"another account":   {state: func(w *scriptedAccount) { w.platform.seen.mismatch = "another" }, status: metav1.ConditionFalse, reason: verifyv1.ReasonAccountMismatch},
		"polled":            {state: func(w *scriptedAccount) { w.settings.Telegram.Polling = true }, status: metav1.ConditionTrue, reason: verifyv1.ReasonPolling},
		"polled, a callback": {state: func(w *scriptedAccount) {
			w.settings.Telegram.Polling, w.platform.callback = true, own+telegram.HookPath
		}, status: metav1.ConditionUnknown, reason: verifyv1.ReasonRegistering},
		"a refused token": {
			state:  func(w *scriptedAccount) { w.platform.err = fmt.Errorf("read: %w", telegram.ErrCredentials) },
			status: metav1.ConditionFalse, reason: verifyv1.ReasonCredentialsRejected,
		},
		"not subscribed": {
			whatsApp: true,
			state: func(w *scriptedAccount) {
				w.platform.callback, w.platform.subscribed.missing = own+"/hooks/whatsapp", true
			},
			status: metav1.ConditionFalse, reason: verifyv1.ReasonNotSubscribed,
		},
		"by hand, another account": {
			whatsApp: true,
			state: func(w *scriptedAccount) {
				w.settings.WhatsApp.RegisterWebhook, w.platform.seen.mismatch = false, "another"
			},
			status: metav1.ConditionFalse, reason: verifyv1.ReasonAccountMismatch,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTelegramAccount(t)
			if c.whatsApp {
				w = newWhatsAppAccount(t)
			}
			c.state(w)
			status := &verifyv1.VerificationProjectStatus{}
			if c.stored != "" {
				status.Telegram = &verifyv1.ChannelStatus{CallbackURL: c.stored}
			}
			condition := examine(t.Context(), w.platform, w.settings, status, func() string { return "the command" })
			w.Expect(condition.Status).To(Equal(c.status), condition.Message)
			w.Expect(condition.Reason).To(Equal(c.reason), condition.Message)
			w.Expect(condition.ObservedGeneration).To(Equal(w.settings.Generation))
			w.Expect(w.platform.countChanges()).To(BeZero())
		})
	}
	w := newTelegramAccount(t)
	w.settings.Telegram = nil
	w.Expect(examine(t.Context(), w.platform, w.settings, &verifyv1.VerificationProjectStatus{}, nil)).To(Equal(metav1.Condition{}))
}
