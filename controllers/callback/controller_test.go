package callback

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	messengers "github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/messenger/telegram"
	"github.com/phoneproof/phoneproof/internal/messenger/whatsapp"
	"github.com/phoneproof/phoneproof/internal/settings"
)

var (
	botURL    = "https://verify.example.com" + telegram.HookPath
	numberURL = "https://verify.example.com/hooks/whatsapp"
)

func TestReconcile_registersAndRemembers(t *testing.T) {
	for name, w := range map[string]*scriptedAccount{"Telegram": newTelegramAccount(t), "WhatsApp": newWhatsAppAccount(t)} {
		t.Run(name, func(t *testing.T) {
			w.Expect(w.expectTrue(verifyv1.ReasonRegistered)).To(Equal(recheckDelay), "did it stay?")
			w.Expect(w.platform.calls).To(Equal([]string{"observe", "register"}))
			w.Expect(w.remembered).To(Equal([]string{w.platform.callback}))
			for range 5 {
				w.clock.Step(recheckDelay)
				w.Expect(w.expectTrue(verifyv1.ReasonRegistered)).To(BeNumerically("~", checkInterval*9/10, checkInterval/10))
			}
			w.Expect(w.platform.countChanges()).To(Equal(1), "once")
			w.Expect(w.remembered).To(HaveLen(1))
			w.Expect(w.log.String()).NotTo(MatchRegexp("canary|verify.example|1065"))
		})
	}
}

// TestReconcile_nextTerm: Meta returns all that is compared; Telegram never returns the secret, so the callback is registered
// once more.
func TestReconcile_nextTerm(t *testing.T) {
	for _, c := range []struct {
		name    string
		w       *scriptedAccount
		changes int
	}{{"Telegram", newTelegramAccount(t), 2}, {"WhatsApp", newWhatsAppAccount(t), 1}} {
		t.Run(c.name, func(t *testing.T) {
			for range 2 {
				c.w.expectTrue(verifyv1.ReasonRegistered)
				c.w.expectTrue(verifyv1.ReasonRegistered)
				c.w.restart()
			}
			c.w.Expect(c.w.platform.countChanges()).To(Equal(c.changes))
		})
	}
}

func TestReconcile_correctsDriftOfOurOwn(t *testing.T) {
	w := newTelegramAccount(t)
	w.expectTrue(verifyv1.ReasonRegistered)
	for name, drift := range map[string]func(){
		"removed":       func() { w.platform.callback = "" },
		"other options": func() { w.platform.seen.drifted = true },
		"an address of before, as status has it": func() {
			w.platform.callback = "https://old.example.com/hooks/telegram"
			w.setStatus("https://old.example.com/hooks/telegram")
		},
	} {
		t.Run(name, func(*testing.T) {
			before := w.platform.countChanges()
			drift()
			w.expectTrue(verifyv1.ReasonRegistered)
			w.platform.seen.drifted = false
			w.expectTrue(verifyv1.ReasonRegistered)
			w.Expect(w.platform.countChanges()).To(Equal(before + 1))
			w.Expect(w.platform.callback).To(Equal(botURL))
			w.Expect(w.controller.earlierCallbacks().callbacks[0]).To(Equal(botURL), "status follows")
		})
	}
}

// TestReconcile_anotherAddress: a callback that was registered for the old address is ours for every later leader.
func TestReconcile_anotherAddress(t *testing.T) {
	for _, nextTerm := range []bool{false, true} {
		w := newWhatsAppAccount(t)
		w.expectTrue(verifyv1.ReasonRegistered)
		w.edit(func(s *settings.Settings) { s.BaseURL = "https://new.example.com" })
		if nextTerm {
			w.restart()
		}
		w.expectTrue(verifyv1.ReasonRegistered)
		w.Expect(w.platform.callback).To(Equal("https://new.example.com/hooks/whatsapp"))
		w.Expect(w.remembered).To(Equal([]string{numberURL, "https://new.example.com/hooks/whatsapp"}))
	}
}

func TestReconcile_keepsForeignCallback(t *testing.T) {
	for name, w := range map[string]*scriptedAccount{"Telegram": newTelegramAccount(t), "WhatsApp": newWhatsAppAccount(t)} {
		t.Run(name, func(t *testing.T) {
			w.platform.callback = foreignURL
			first := w.expectFalse(verifyv1.ReasonCallbackTaken)
			for range 20 {
				w.Expect(w.expectFalse(verifyv1.ReasonCallbackTaken)).To(BeNumerically(">=", first*3/4))
			}
			w.Expect(w.expectFalse(verifyv1.ReasonCallbackTaken)).To(BeNumerically("~", maxRetry*9/10, maxRetry/10), "with a growing delay")
			w.Expect(w.platform.countChanges()).To(BeZero(), "the foreign callback stays")
			w.Expect(w.remembered).To(BeEmpty())

			w.edit(func(s *settings.Settings) {
				if s.Telegram != nil {
					s.Telegram.TakeOver = true
				} else {
					s.WhatsApp.TakeOver = true
				}
			})
			w.expectTrue(verifyv1.ReasonRegistered)
			w.Expect(w.platform.callback).To(HavePrefix("https://verify.example.com/"))
		})
	}
}

// TestReconcile_anotherSecret: a rotated secret is registered again, within the term and across terms.
func TestReconcile_anotherSecret(t *testing.T) {
	w := newTelegramAccount(t)
	w.expectTrue(verifyv1.ReasonRegistered)
	rotated := botToken + "-next"
	w.edit(func(s *settings.Settings) { s.Telegram.BotToken = settings.NewSecret([]byte(rotated)) })
	w.expectTrue(verifyv1.ReasonRegistered)
	w.Expect(w.platform.countChanges()).To(Equal(2))
	w.Expect(w.platform.secrets[len(w.platform.secrets)-1]).To(Equal(rotated))
	w.expectTrue(verifyv1.ReasonRegistered)
	w.Expect(w.platform.countChanges()).To(Equal(2))

	w = newWhatsAppAccount(t)
	w.expectTrue(verifyv1.ReasonRegistered)
	w.edit(func(s *settings.Settings) { s.WhatsApp.AppSecret = settings.NewSecret([]byte(appSecret + "-next")) })
	w.expectTrue(verifyv1.ReasonRegistered)
	w.edit(func(s *settings.Settings) { s.WhatsApp.AccessToken = settings.NewSecret([]byte(accessToken + "-next")) })
	w.expectTrue(verifyv1.ReasonRegistered)
	w.Expect(w.platform.countChanges()).To(Equal(2), "the app secret is part of what is registered, the access token is not")
}

func TestReconcile_withoutAsking(t *testing.T) {
	for name, row := range map[string]struct {
		w      *scriptedAccount
		change func(*settings.Settings)
		status metav1.ConditionStatus
		reason string
	}{
		"no bot token": {newTelegramAccount(t), func(s *settings.Settings) { s.Telegram.BotToken = settings.Secret{} },
			metav1.ConditionFalse, verifyv1.ReasonSecretsNotReady},
		"no app secret": {newWhatsAppAccount(t), func(s *settings.Settings) { s.WhatsApp.AppSecret = settings.Secret{} },
			metav1.ConditionFalse, verifyv1.ReasonSecretsNotReady},
		"no access token": {newWhatsAppAccount(t), func(s *settings.Settings) { s.WhatsApp.AccessToken = settings.Secret{} },
			metav1.ConditionFalse, verifyv1.ReasonSecretsNotReady},
		"manual registration, without app secret": {newWhatsAppAccount(t), func(s *settings.Settings) {
			s.WhatsApp.RegisterWebhook, s.WhatsApp.AppSecret = false, settings.Secret{}
		}, metav1.ConditionFalse, verifyv1.ReasonSecretsNotReady},
		"manual registration, without access token": {newWhatsAppAccount(t), func(s *settings.Settings) {
			s.WhatsApp.RegisterWebhook, s.WhatsApp.AccessToken = false, settings.Secret{}
		}, metav1.ConditionTrue, verifyv1.ReasonRegistrationByHand},
		"an address that is too long": {newWhatsAppAccount(t), func(s *settings.Settings) {
			s.BaseURL = "https://" + string(make([]byte, 200))
		}, metav1.ConditionFalse, verifyv1.ReasonCallbackUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			row.w.edit(row.change)
			row.w.Expect(row.w.expect(row.status, row.reason)).To(BeZero(), "until something changes")
			row.w.Expect(row.w.platform.calls).To(BeEmpty())
			row.w.Expect(row.w.platform.questions).To(BeZero())
			row.w.edit(func(*settings.Settings) {})
			row.w.expect(row.status, row.reason) // of the new generation
		})
	}
}

// TestReconcile_withoutTheMessenger: the messenger is not part of the project, and maybe never was.
func TestReconcile_withoutTheMessenger(t *testing.T) {
	w := newTelegramAccount(t)
	w.edit(func(s *settings.Settings) { s.Telegram = nil })
	_, wait := w.reconcile()
	w.Expect(wait).To(BeZero())
	w.Expect(w.conditions).To(BeEmpty())
	w.Expect(w.withdrawn).To(Equal(1))
	w.Expect(w.platform.calls).To(BeEmpty())
}

// TestReconcile_takenOut: the leader removes our own callback, and no other.
func TestReconcile_takenOut(t *testing.T) {
	out := map[string]func(*scriptedAccount){
		"of the project":   func(w *scriptedAccount) { w.edit(func(s *settings.Settings) { s.Telegram = nil }) },
		"with the project": func(w *scriptedAccount) { w.projects.replace(nil) },
	}
	for name, takeOut := range out {
		t.Run(name, func(t *testing.T) {
			w := newTelegramAccount(t)
			w.expectTrue(verifyv1.ReasonRegistered)
			takeOut(w)
			_, wait := w.reconcile()
			w.Expect(wait).To(BeZero())
			w.Expect(w.platform.callback).To(BeEmpty())
			w.Expect(w.platform.secrets[len(w.platform.secrets)-1]).To(Equal(botToken), "with the former credentials")
			w.Expect(w.withdrawn).To(Equal(1))
			w.reconcile()
			w.Expect(w.platform.countChanges()).To(Equal(2), "once")
		})
		t.Run(name+", foreign callback", func(t *testing.T) {
			w := newTelegramAccount(t)
			w.expectTrue(verifyv1.ReasonRegistered)
			w.platform.callback = foreignURL
			takeOut(w)
			w.reconcile()
			w.Expect(w.platform.callback).To(Equal(foreignURL))
			w.Expect(w.withdrawn).To(Equal(1))
		})
		t.Run(name+", during an outage of the platform", func(t *testing.T) {
			w := newTelegramAccount(t)
			w.expectTrue(verifyv1.ReasonRegistered)
			w.platform.err = errAway
			takeOut(w)
			_, wait := w.reconcile()
			w.Expect(wait).To(BeNumerically("~", firstRetry*9/10, firstRetry/10))
			w.platform.err = nil
			_, wait = w.reconcile()
			w.Expect(wait).To(BeZero())
			w.Expect(w.platform.callback).To(BeEmpty())
		})
		t.Run(name+", during a long outage of the platform", func(t *testing.T) {
			w := newTelegramAccount(t)
			w.expectTrue(verifyv1.ReasonRegistered)
			w.platform.err = errAway
			takeOut(w)
			for range 2 * maxRemovals {
				w.reconcile()
			}
			w.Expect(w.platform.calls).To(HaveLen(2+maxRemovals), "it is given up")
		})
	}
	w := newTelegramAccount(t)
	w.expectTrue(verifyv1.ReasonRegistered)
	out["of the project"](w)
	w.reconcile()
	w.Expect(w.remembered).To(Equal([]string{botURL, ""}), "no callback is ours any more")
}

// TestReconcile_suspended: messages wait at the platform.
func TestReconcile_suspended(t *testing.T) {
	w := newTelegramAccount(t)
	w.expectTrue(verifyv1.ReasonRegistered)
	w.edit(func(s *settings.Settings) { s.Suspended = true })
	w.expectTrue(verifyv1.ReasonRegistered)
	w.Expect(w.platform.callback).To(Equal(botURL))
}

// TestReconcile_anotherAccount: the callback of the former account is removed, and one is registered for the new account.
func TestReconcile_anotherAccount(t *testing.T) {
	w := newTelegramAccount(t)
	w.expectTrue(verifyv1.ReasonRegistered)
	w.edit(func(s *settings.Settings) {
		s.Telegram.BotUsername, s.Telegram.BotToken = "other_shop_bot", settings.NewSecret([]byte("77:another"))
	})
	w.expectTrue(verifyv1.ReasonRegistered)
	w.Expect(w.platform.calls[2:]).To(Equal([]string{"observe", "remove", "observe", "register"}))
	w.Expect(w.platform.secrets[2:]).To(Equal([]string{botToken, botToken, "77:another", "77:another"}))
	w.Expect(w.platform.callback).To(Equal(botURL))
}

// TestReconcile_manualFromNowOn: an existing registration is left to the user.
func TestReconcile_manualFromNowOn(t *testing.T) {
	w := newWhatsAppAccount(t)
	w.expectTrue(verifyv1.ReasonRegistered)
	w.edit(func(s *settings.Settings) { s.WhatsApp.RegisterWebhook = false })
	w.expectTrue(verifyv1.ReasonRegistrationByHand)
	w.edit(func(s *settings.Settings) { s.WhatsApp = nil })
	w.reconcile()
	w.Expect(w.platform.callback).To(Equal(numberURL))
}

// TestReconcile_patience: a temporary problem is reported only if it lasts; the former condition stays until then.
func TestReconcile_patience(t *testing.T) {
	w := newTelegramAccount(t)
	w.platform.err = errAway
	w.expect(metav1.ConditionUnknown, verifyv1.ReasonRegistering)
	w.platform.err = nil
	w.expectTrue(verifyv1.ReasonRegistered)

	w.platform.err = errAway
	for n := range patience - 1 {
		w.Expect(w.expectTrue(verifyv1.ReasonRegistered)).To(BeNumerically("<=", firstRetry<<n))
	}
	w.expectFalse(verifyv1.ReasonPlatformUnreachable)
	var last time.Duration
	for range 10 {
		last = w.expectFalse(verifyv1.ReasonPlatformUnreachable)
	}
	w.Expect(last).To(BeNumerically(">=", maxRetry*4/5))
	w.platform.err = nil
	w.expectTrue(verifyv1.ReasonRegistered)

	w.platform.err = errAway
	project := &verifyv1.VerificationProject{}
	project.Status.Conditions = []metav1.Condition{{Type: verifyv1.ConditionTelegramReady, Status: metav1.ConditionTrue}}
	w.projects.replace(project)
	w.restart()
	before := len(w.conditions)
	w.reconcile()
	w.Expect(w.conditions).To(HaveLen(before), "the former leader's condition stays")
}

func TestReconcile_reportsLastingFailureAtOnce(t *testing.T) {
	w := newTelegramAccount(t)
	w.platform.err = telegram.ErrCredentials
	w.expectFalse(verifyv1.ReasonCredentialsRejected)
	w.platform.err = nil
	w.platform.fails["register"] = &telegram.Error{Method: "setWebhook", Description: "Bad Request: bad webhook: Failed to resolve host"}
	w.platform.fails["register"] = errors.Join(telegram.ErrRefused, w.platform.fails["register"])
	w.expectFalse(verifyv1.ReasonCallbackUnreachable)
	w.Expect(w.remembered).To(BeEmpty(), "only a registered callback is ours")
	w.platform.seen.mismatch = "why"
	w.expectFalse(verifyv1.ReasonAccountMismatch)
}

// TestExplain_platformAnswers calls servers with real clients: a platform that answers is not reported as unreachable.
func TestExplain_platformAnswers(t *testing.T) {
	const failing, unreachable = verifyv1.ReasonPlatformFailing, verifyv1.ReasonPlatformUnreachable
	for name, row := range map[string]struct {
		answer     http.HandlerFunc
		says, meta callFailure // with a part of the message
	}{
		"500": {respondWith(500, `{"error":{"code":2},"ok":false,"error_code":500}`),
			callFailure{failing, "Telegram's Bot API answered 500: ", true}, callFailure{failing, "Meta's Graph API answered 500: ", true}},
		"a page of a gateway": {respondWith(502, `<html>`),
			callFailure{failing, "Telegram's Bot API answered 502, or a proxy in front of it", true},
			callFailure{failing, "Meta's Graph API answered 502, or a proxy in front of it", true}},
		"JSON of a gateway": {respondWith(503, `{"message":"no healthy upstream"}`),
			callFailure{failing, "Telegram's Bot API answered 503, or a proxy in front of it", true},
			callFailure{failing, "Meta's Graph API answered 503, or a proxy in front of it", true}},
		"a failure under 400": {respondWith(400, `{"error":{"code":131016},"ok":false,"error_code":500}`),
			callFailure{failing, "Telegram's Bot API answered 500: ", true},
			callFailure{failing, "Meta's Graph API answered with its error code 131016: it failed itself", true}},
		"too many calls": {respondWith(429, `{"ok":false,"error_code":429}`),
			callFailure{failing, "Telegram asks to wait", true}, callFailure{failing, "asks to wait", true}},
		"400": {respondWith(400, `{"error":{"code":100},"ok":false,"error_code":400,"description":"canary"}`),
			callFailure{failing, "Telegram's Bot API refuses the call with 400; ", true},
			callFailure{verifyv1.ReasonAccountMismatch, "leads to no number", false}},
		"400 after logOut": {respondWith(400, `{"error":{"code":100},"ok":false,"error_code":400,"description":"Logged out"}`),
			callFailure{failing, "Telegram's Bot API refuses the call with 400: the bot was logged out", true},
			callFailure{verifyv1.ReasonAccountMismatch, "leads to no number", false}},
		"403": {respondWith(403, `{"error":{"code":200},"ok":false,"error_code":403,"description":"canary"}`),
			callFailure{failing, "Telegram's Bot API refuses the call with 403; ", true},
			callFailure{verifyv1.ReasonCredentialsRejected, "refuses the access token", false}},
		"409": {respondWith(409, `{"error":{"code":100},"ok":false,"error_code":409,"description":"canary"}`),
			callFailure{verifyv1.ReasonCallbackTaken, "another program fetches this bot's updates", true},
			callFailure{verifyv1.ReasonAccountMismatch, "leads to no number", false}},
		"403 of a proxy": {respondWith(403, `{"message":"not for you"}`),
			callFailure{unreachable, "something else answers", true},
			callFailure{verifyv1.ReasonCredentialsRejected, "refuses the access token", false}},
		"a captive portal": {respondWith(200, `<html>`),
			callFailure{unreachable, "something else answers", true}, callFailure{unreachable, "something else answers", true}},
		"no answer": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			callFailure{unreachable, "does not answer", true}, callFailure{unreachable, "does not answer", true}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server := httptest.NewServer(row.answer)
			t.Cleanup(server.Close)
			s := newTelegramAccount(t).settings
			s.WhatsApp = newWhatsAppAccount(t).settings.WhatsApp

			botClient, err := telegram.NewClient(telegram.ClientOptions{BaseURL: server.URL})
			g.Expect(err).NotTo(HaveOccurred())
			bot := newBotAPI(botClient, nil)
			_, err = bot.readState(t.Context(), s)
			for doing, err := range map[step]error{stepNone: err, stepRemove: bot.removeCallback(t.Context(), s)} {
				said := bot.explainError(err, doing)
				g.Expect(said.message).To(And(ContainSubstring(row.says.message), Not(ContainSubstring("canary"))))
				said.message = row.says.message
				g.Expect(said).To(Equal(row.says))
			}

			graphClient, err := whatsapp.NewClient(whatsapp.ClientOptions{GraphURL: server.URL})
			g.Expect(err).NotTo(HaveOccurred())
			_, err = (&graph{client: graphClient}).readState(t.Context(), s)
			said := (&graph{}).explainError(err, stepNone)
			g.Expect(said.message).To(ContainSubstring(row.meta.message))
			said.message = row.meta.message
			g.Expect(said).To(Equal(row.meta))
		})
	}
}

func respondWith(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// TestReconcile_asLongAsThePlatformAsks is 429 with retry_after: the platform is not called earlier, whatever changes.
func TestReconcile_asLongAsThePlatformAsks(t *testing.T) {
	w := newTelegramAccount(t)
	w.platform.err = errors.Join(telegram.ErrRateLimited, &telegram.Error{CallError: messengers.CallError{RetryAfter: 40 * time.Second}, Method: "getMe"})
	_, wait := w.reconcile()
	w.Expect(wait).To(Equal(40 * time.Second))
	w.platform.err = nil
	w.clock.Step(30 * time.Second)
	w.edit(func(s *settings.Settings) { s.DisplayName = "another" })
	_, wait = w.reconcile()
	w.Expect(wait).To(Equal(10 * time.Second))
	w.Expect(w.platform.calls).To(HaveLen(1))
	w.clock.Step(10 * time.Second)
	w.expectTrue(verifyv1.ReasonRegistered)
}

func TestReconcile_statusThatCannotBeWritten(t *testing.T) {
	w := newTelegramAccount(t)
	w.rememberErr = errors.New("API server is unreachable")
	w.Expect(w.expectTrue(verifyv1.ReasonRegistered)).To(BeNumerically("<=", firstRetry), "the condition is set at once, the status soon")
	w.rememberErr = nil
	w.expectTrue(verifyv1.ReasonRegistered)
	w.Expect(w.remembered).To(Equal([]string{botURL}))
	w.Expect(w.platform.countChanges()).To(Equal(1))
}

// TestReconcile_withoutACluster has no status to store the callback in, and no condition to set.
func TestReconcile_withoutACluster(t *testing.T) {
	w := newTelegramAccount(t)
	c := w.controller
	c.Projects, c.Remember, c.Set, c.Withdraw = nil, nil, nil, nil
	w.Expect(c.reconcileOnce(t.Context())).To(Equal(recheckDelay))
	w.edit(func(s *settings.Settings) { s.BaseURL = "https://new.example.com" })
	c.reconcileOnce(t.Context())
	w.Expect(w.platform.callback).To(HavePrefix("https://new.example.com/"), "this process knows what it registered")
	w.edit(func(s *settings.Settings) { s.Telegram = nil })
	c.reconcileOnce(t.Context())
	w.Expect(w.platform.callback).To(BeEmpty())
}

func TestReconcile_endOfTheTerm(t *testing.T) {
	w := newTelegramAccount(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.platform.err = context.Canceled
	w.Expect(w.controller.reconcileOnce(ctx)).To(BeZero())
	w.Expect(w.conditions).To(BeEmpty(), "the end of a term is no problem")
}
