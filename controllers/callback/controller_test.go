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
	"github.com/phoneproof/phoneproof/internal/messenger/telegram"
	"github.com/phoneproof/phoneproof/internal/messenger/whatsapp"
	"github.com/phoneproof/phoneproof/internal/settings"
)

var (
	botURL    = "https://verify.example.com" + telegram.HookPath
	numberURL = "https://verify.example.com/hooks/whatsapp"
)

func TestReconcile_registersAndRemembers(t *testing.T) {
	for name, w := range map[string]*world{"Telegram": newTelegram(t), "WhatsApp": newWhatsApp(t)} {
		t.Run(name, func(t *testing.T) {
			w.Expect(w.is(verifyv1.ReasonRegistered)).To(Equal(soonAfter), "did it stay?")
			w.Expect(w.platform.calls).To(Equal([]string{"observe", "register"}))
			w.Expect(w.remembered).To(Equal([]string{w.platform.callback}))
			for range 5 {
				w.clock.Step(soonAfter)
				w.Expect(w.is(verifyv1.ReasonRegistered)).To(BeNumerically("~", steadyEvery*9/10, steadyEvery/10))
			}
			w.Expect(w.platform.changes()).To(Equal(1), "once")
			w.Expect(w.remembered).To(HaveLen(1))
			w.Expect(w.log.String()).NotTo(MatchRegexp("canary|verify.example|1065"))
		})
	}
}

// TestReconcile_nextTerm: Meta tells all that counts; Telegram does not tell the secret, so it is told once more.
func TestReconcile_nextTerm(t *testing.T) {
	for _, c := range []struct {
		name    string
		w       *world
		changes int
	}{{"Telegram", newTelegram(t), 2}, {"WhatsApp", newWhatsApp(t), 1}} {
		t.Run(c.name, func(t *testing.T) {
			for range 2 {
				c.w.is(verifyv1.ReasonRegistered)
				c.w.is(verifyv1.ReasonRegistered)
				c.w.restart()
			}
			c.w.Expect(c.w.platform.changes()).To(Equal(c.changes))
		})
	}
}

func TestReconcile_mendsDriftOfOurOwn(t *testing.T) {
	w := newTelegram(t)
	w.is(verifyv1.ReasonRegistered)
	for name, drift := range map[string]func(){
		"removed":     func() { w.platform.callback = "" },
		"other terms": func() { w.platform.seen.drifted = true },
		"an address of before, as status has it": func() {
			w.platform.callback = "https://old.example.com/hooks/telegram"
			w.status("https://old.example.com/hooks/telegram")
		},
	} {
		t.Run(name, func(*testing.T) {
			before := w.platform.changes()
			drift()
			w.is(verifyv1.ReasonRegistered)
			w.platform.seen.drifted = false
			w.is(verifyv1.ReasonRegistered)
			w.Expect(w.platform.changes()).To(Equal(before + 1))
			w.Expect(w.platform.callback).To(Equal(botURL))
			w.Expect(w.controller.known().callbacks[0]).To(Equal(botURL), "status follows")
		})
	}
}

// TestReconcile_anotherAddress: what we registered at the old one is ours, whoever leads by then.
func TestReconcile_anotherAddress(t *testing.T) {
	for _, nextTerm := range []bool{false, true} {
		w := newWhatsApp(t)
		w.is(verifyv1.ReasonRegistered)
		w.edit(func(s *settings.Settings) { s.BaseURL = "https://new.example.com" })
		if nextTerm {
			w.restart()
		}
		w.is(verifyv1.ReasonRegistered)
		w.Expect(w.platform.callback).To(Equal("https://new.example.com/hooks/whatsapp"))
		w.Expect(w.remembered).To(Equal([]string{numberURL, "https://new.example.com/hooks/whatsapp"}))
	}
}

func TestReconcile_somebodyElses(t *testing.T) {
	for name, w := range map[string]*world{"Telegram": newTelegram(t), "WhatsApp": newWhatsApp(t)} {
		t.Run(name, func(t *testing.T) {
			w.platform.callback = foreignURL
			first := w.isNot(verifyv1.ReasonCallbackTaken)
			for range 20 {
				w.Expect(w.isNot(verifyv1.ReasonCallbackTaken)).To(BeNumerically(">=", first*3/4))
			}
			w.Expect(w.isNot(verifyv1.ReasonCallbackTaken)).To(BeNumerically("~", maxRetry*9/10, maxRetry/10), "more and more seldom")
			w.Expect(w.platform.changes()).To(BeZero(), "it is left alone")
			w.Expect(w.remembered).To(BeEmpty())

			w.edit(func(s *settings.Settings) {
				if s.Telegram != nil {
					s.Telegram.TakeOver = true
				} else {
					s.WhatsApp.TakeOver = true
				}
			})
			w.is(verifyv1.ReasonRegistered)
			w.Expect(w.platform.callback).To(HavePrefix("https://verify.example.com/"))
		})
	}
}

// TestReconcile_anotherSecret: a rotation registers anew, within the term and over a change of leaders.
func TestReconcile_anotherSecret(t *testing.T) {
	w := newTelegram(t)
	w.is(verifyv1.ReasonRegistered)
	rotated := botToken + "-next"
	w.edit(func(s *settings.Settings) { s.Telegram.BotToken = settings.NewSecret([]byte(rotated)) })
	w.is(verifyv1.ReasonRegistered)
	w.Expect(w.platform.changes()).To(Equal(2))
	w.Expect(w.platform.secrets[len(w.platform.secrets)-1]).To(Equal(rotated))
	w.is(verifyv1.ReasonRegistered)
	w.Expect(w.platform.changes()).To(Equal(2))

	w = newWhatsApp(t)
	w.is(verifyv1.ReasonRegistered)
	w.edit(func(s *settings.Settings) { s.WhatsApp.AppSecret = settings.NewSecret([]byte(appSecret + "-next")) })
	w.is(verifyv1.ReasonRegistered)
	w.edit(func(s *settings.Settings) { s.WhatsApp.AccessToken = settings.NewSecret([]byte(accessToken + "-next")) })
	w.is(verifyv1.ReasonRegistered)
	w.Expect(w.platform.changes()).To(Equal(2), "the app secret is part of what is registered, the access token is not")
}

func TestReconcile_withoutAsking(t *testing.T) {
	for name, row := range map[string]struct {
		w      *world
		change func(*settings.Settings)
		status metav1.ConditionStatus
		reason string
	}{
		"no bot token": {newTelegram(t), func(s *settings.Settings) { s.Telegram.BotToken = settings.Secret{} },
			metav1.ConditionFalse, verifyv1.ReasonSecretsNotReady},
		"no app secret": {newWhatsApp(t), func(s *settings.Settings) { s.WhatsApp.AppSecret = settings.Secret{} },
			metav1.ConditionFalse, verifyv1.ReasonSecretsNotReady},
		"no access token": {newWhatsApp(t), func(s *settings.Settings) { s.WhatsApp.AccessToken = settings.Secret{} },
			metav1.ConditionFalse, verifyv1.ReasonSecretsNotReady},
		"by hand": {newWhatsApp(t), func(s *settings.Settings) { s.WhatsApp.RegisterWebhook = false },
			metav1.ConditionTrue, verifyv1.ReasonRegistrationByHand},
		"by hand, without app secret": {newWhatsApp(t), func(s *settings.Settings) {
			s.WhatsApp.RegisterWebhook, s.WhatsApp.AppSecret = false, settings.Secret{}
		}, metav1.ConditionFalse, verifyv1.ReasonSecretsNotReady},
		"by hand, without access token": {newWhatsApp(t), func(s *settings.Settings) {
			s.WhatsApp.RegisterWebhook, s.WhatsApp.AccessToken = false, settings.Secret{}
		}, metav1.ConditionTrue, verifyv1.ReasonRegistrationByHand},
		"an address that is too long": {newWhatsApp(t), func(s *settings.Settings) {
			s.BaseURL = "https://" + string(make([]byte, 200))
		}, metav1.ConditionFalse, verifyv1.ReasonCallbackUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			row.w.edit(row.change)
			row.w.Expect(row.w.says(row.status, row.reason)).To(BeZero(), "until something changes")
			row.w.Expect(row.w.platform.calls).To(BeEmpty())
			row.w.edit(func(*settings.Settings) {})
			row.w.says(row.status, row.reason) // of the new generation
		})
	}
}

// TestReconcile_withoutTheMessenger: it is not part of the project, and perhaps never was.
func TestReconcile_withoutTheMessenger(t *testing.T) {
	w := newTelegram(t)
	w.edit(func(s *settings.Settings) { s.Telegram = nil })
	_, wait := w.look()
	w.Expect(wait).To(BeZero())
	w.Expect(w.conditions).To(BeEmpty())
	w.Expect(w.withdrawn).To(Equal(1))
	w.Expect(w.platform.calls).To(BeEmpty())
}

// TestReconcile_takenOut: who leads removes our own callback, and no other.
func TestReconcile_takenOut(t *testing.T) {
	out := map[string]func(*world){
		"of the project":   func(w *world) { w.edit(func(s *settings.Settings) { s.Telegram = nil }) },
		"with the project": func(w *world) { w.projects.replace(nil) },
	}
	for name, takeOut := range out {
		t.Run(name, func(t *testing.T) {
			w := newTelegram(t)
			w.is(verifyv1.ReasonRegistered)
			takeOut(w)
			_, wait := w.look()
			w.Expect(wait).To(BeZero())
			w.Expect(w.platform.callback).To(BeEmpty())
			w.Expect(w.platform.secrets[len(w.platform.secrets)-1]).To(Equal(botToken), "with the credentials of then")
			w.Expect(w.withdrawn).To(Equal(1))
			w.look()
			w.Expect(w.platform.changes()).To(Equal(2), "once")
		})
		t.Run(name+", somebody else's", func(t *testing.T) {
			w := newTelegram(t)
			w.is(verifyv1.ReasonRegistered)
			w.platform.callback = foreignURL
			takeOut(w)
			w.look()
			w.Expect(w.platform.callback).To(Equal(foreignURL))
			w.Expect(w.withdrawn).To(Equal(1))
		})
		t.Run(name+", while the platform is away", func(t *testing.T) {
			w := newTelegram(t)
			w.is(verifyv1.ReasonRegistered)
			w.platform.err = errAway
			takeOut(w)
			_, wait := w.look()
			w.Expect(wait).To(BeNumerically("~", firstRetry*9/10, firstRetry/10))
			w.platform.err = nil
			_, wait = w.look()
			w.Expect(wait).To(BeZero())
			w.Expect(w.platform.callback).To(BeEmpty())
		})
		t.Run(name+", while the platform is away for long", func(t *testing.T) {
			w := newTelegram(t)
			w.is(verifyv1.ReasonRegistered)
			w.platform.err = errAway
			takeOut(w)
			for range 2 * maxFarewells {
				w.look()
			}
			w.Expect(w.platform.calls).To(HaveLen(2+maxFarewells), "it is given up")
		})
	}
	w := newTelegram(t)
	w.is(verifyv1.ReasonRegistered)
	out["of the project"](w)
	w.look()
	w.Expect(w.remembered).To(Equal([]string{botURL, ""}), "nothing is ours any more")
}

// TestReconcile_suspended: messages are to wait at the platform.
func TestReconcile_suspended(t *testing.T) {
	w := newTelegram(t)
	w.is(verifyv1.ReasonRegistered)
	w.edit(func(s *settings.Settings) { s.Suspended = true })
	w.is(verifyv1.ReasonRegistered)
	w.Expect(w.platform.callback).To(Equal(botURL))
}

// TestReconcile_anotherAccount: the callback at the former one goes, that at the new one comes.
func TestReconcile_anotherAccount(t *testing.T) {
	w := newTelegram(t)
	w.is(verifyv1.ReasonRegistered)
	w.edit(func(s *settings.Settings) {
		s.Telegram.BotUsername, s.Telegram.BotToken = "other_shop_bot", settings.NewSecret([]byte("77:another"))
	})
	w.is(verifyv1.ReasonRegistered)
	w.Expect(w.platform.calls[2:]).To(Equal([]string{"observe", "remove", "observe", "register"}))
	w.Expect(w.platform.secrets[2:]).To(Equal([]string{botToken, botToken, "77:another", "77:another"}))
	w.Expect(w.platform.callback).To(Equal(botURL))
}

// TestReconcile_byHandFromNowOn: what is there is the user's business.
func TestReconcile_byHandFromNowOn(t *testing.T) {
	w := newWhatsApp(t)
	w.is(verifyv1.ReasonRegistered)
	w.edit(func(s *settings.Settings) { s.WhatsApp.RegisterWebhook = false })
	w.is(verifyv1.ReasonRegistrationByHand)
	w.edit(func(s *settings.Settings) { s.WhatsApp = nil })
	w.look()
	w.Expect(w.platform.callback).To(Equal(numberURL))
}

// TestReconcile_patience: what may pass by itself is told when it does not; what was true stays said until then.
func TestReconcile_patience(t *testing.T) {
	w := newTelegram(t)
	w.platform.err = errAway
	w.says(metav1.ConditionUnknown, verifyv1.ReasonRegistering)
	w.platform.err = nil
	w.is(verifyv1.ReasonRegistered)

	w.platform.err = errAway
	for n := range patience - 1 {
		w.Expect(w.is(verifyv1.ReasonRegistered)).To(BeNumerically("<=", firstRetry<<n))
	}
	w.isNot(verifyv1.ReasonPlatformUnreachable)
	var last time.Duration
	for range 10 {
		last = w.isNot(verifyv1.ReasonPlatformUnreachable)
	}
	w.Expect(last).To(BeNumerically(">=", maxRetry*4/5))
	w.platform.err = nil
	w.is(verifyv1.ReasonRegistered)

	w.platform.err = errAway
	project := &verifyv1.VerificationProject{}
	project.Status.Conditions = []metav1.Condition{{Type: verifyv1.ConditionTelegramReady, Status: metav1.ConditionTrue}}
	w.projects.replace(project)
	w.restart()
	told := len(w.conditions)
	w.look()
	w.Expect(w.conditions).To(HaveLen(told), "what the leader before said stands")
}

func TestReconcile_troubleThatSomebodyMustMend(t *testing.T) {
	w := newTelegram(t)
	w.platform.err = telegram.ErrCredentials
	w.isNot(verifyv1.ReasonCredentialsRejected)
	w.platform.err = nil
	w.platform.fails["register"] = &telegram.Error{Method: "setWebhook", Description: "Bad Request: bad webhook: Failed to resolve host"}
	w.platform.fails["register"] = errors.Join(telegram.ErrRefused, w.platform.fails["register"])
	w.isNot(verifyv1.ReasonCallbackUnreachable)
	w.Expect(w.remembered).To(BeEmpty(), "only what was registered is ours")
	w.platform.seen.mismatch = "why"
	w.isNot(verifyv1.ReasonAccountMismatch)
}

// TestExplain_whatThePlatformAnswered asks real clients against servers that answer so: who answers is not unreachable.
func TestExplain_whatThePlatformAnswered(t *testing.T) {
	const failing, unreachable = verifyv1.ReasonPlatformFailing, verifyv1.ReasonPlatformUnreachable
	for name, row := range map[string]struct {
		answer     http.HandlerFunc
		says, meta trouble // with a part of the message
	}{
		"500": {answering(500, `{"error":{"code":2},"ok":false,"error_code":500}`),
			trouble{failing, "Telegram's Bot API answered 500: ", true}, trouble{failing, "Meta's Graph API answered 500: ", true}},
		"a page of a gateway": {answering(502, `<html>`),
			trouble{failing, "Telegram's Bot API answered 502, or a proxy in front of it", true},
			trouble{failing, "Meta's Graph API answered 502, or a proxy in front of it", true}},
		"JSON of a gateway": {answering(503, `{"message":"no healthy upstream"}`),
			trouble{failing, "Telegram's Bot API answered 503, or a proxy in front of it", true},
			trouble{failing, "Meta's Graph API answered 503, or a proxy in front of it", true}},
		"a failure under 400": {answering(400, `{"error":{"code":131016},"ok":false,"error_code":500}`),
			trouble{failing, "Telegram's Bot API answered 500: ", true},
			trouble{failing, "Meta's Graph API answered with its error code 131016: it failed itself", true}},
		"too many calls": {answering(429, `{"ok":false,"error_code":429}`),
			trouble{failing, "Telegram asks to wait", true}, trouble{failing, "asks to wait", true}},
		"400": {answering(400, `{"error":{"code":100},"ok":false,"error_code":400,"description":"canary"}`),
			trouble{failing, "Telegram's Bot API refuses the call with 400; ", true},
			trouble{verifyv1.ReasonAccountMismatch, "leads to no number", false}},
		"400 after logOut": {answering(400, `{"error":{"code":100},"ok":false,"error_code":400,"description":"Logged out"}`),
			trouble{failing, "Telegram's Bot API refuses the call with 400: the bot was logged out", true},
			trouble{verifyv1.ReasonAccountMismatch, "leads to no number", false}},
		"403": {answering(403, `{"error":{"code":200},"ok":false,"error_code":403,"description":"canary"}`),
			trouble{failing, "Telegram's Bot API refuses the call with 403; ", true},
			trouble{verifyv1.ReasonCredentialsRejected, "refuses the access token", false}},
		"409": {answering(409, `{"error":{"code":100},"ok":false,"error_code":409,"description":"canary"}`),
			trouble{verifyv1.ReasonCallbackTaken, "another program fetches this bot's updates", true},
			trouble{verifyv1.ReasonAccountMismatch, "leads to no number", false}},
		"403 of a proxy": {answering(403, `{"message":"not for you"}`),
			trouble{unreachable, "something else answers", true},
			trouble{verifyv1.ReasonCredentialsRejected, "refuses the access token", false}},
		"a captive portal": {answering(200, `<html>`),
			trouble{unreachable, "something else answers", true}, trouble{unreachable, "something else answers", true}},
		"no answer": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			trouble{unreachable, "does not answer", true}, trouble{unreachable, "does not answer", true}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server := httptest.NewServer(row.answer)
			t.Cleanup(server.Close)
			s := newTelegram(t).settings
			s.WhatsApp = newWhatsApp(t).settings.WhatsApp

			botClient, err := telegram.NewClient(telegram.ClientOptions{BaseURL: server.URL})
			g.Expect(err).NotTo(HaveOccurred())
			bot := newBotAPI(botClient, nil)
			_, err = bot.observe(t.Context(), s)
			for doing, err := range map[step]error{stepNone: err, stepRemove: bot.remove(t.Context(), s)} {
				said := bot.explain(err, doing)
				g.Expect(said.message).To(And(ContainSubstring(row.says.message), Not(ContainSubstring("canary"))))
				said.message = row.says.message
				g.Expect(said).To(Equal(row.says))
			}

			graphClient, err := whatsapp.NewClient(whatsapp.ClientOptions{GraphURL: server.URL})
			g.Expect(err).NotTo(HaveOccurred())
			_, err = graph{graphClient}.observe(t.Context(), s)
			said := graph{}.explain(err, stepNone)
			g.Expect(said.message).To(ContainSubstring(row.meta.message))
			said.message = row.meta.message
			g.Expect(said).To(Equal(row.meta))
		})
	}
}

func answering(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// TestReconcile_asLongAsThePlatformAsks is 429 with retry_after: nothing is asked before, whatever changes.
func TestReconcile_asLongAsThePlatformAsks(t *testing.T) {
	w := newTelegram(t)
	w.platform.err = errors.Join(telegram.ErrRateLimited, &telegram.Error{Method: "getMe", RetryAfter: 40 * time.Second})
	_, wait := w.look()
	w.Expect(wait).To(Equal(40 * time.Second))
	w.platform.err = nil
	w.clock.Step(30 * time.Second)
	w.edit(func(s *settings.Settings) { s.DisplayName = "another" })
	_, wait = w.look()
	w.Expect(wait).To(Equal(10 * time.Second))
	w.Expect(w.platform.calls).To(HaveLen(1))
	w.clock.Step(10 * time.Second)
	w.is(verifyv1.ReasonRegistered)
}

func TestReconcile_statusThatCannotBeWritten(t *testing.T) {
	w := newTelegram(t)
	w.rememberErr = errors.New("the API server is away")
	w.Expect(w.is(verifyv1.ReasonRegistered)).To(BeNumerically("<=", firstRetry), "it is true, and noted soon")
	w.rememberErr = nil
	w.is(verifyv1.ReasonRegistered)
	w.Expect(w.remembered).To(Equal([]string{botURL}))
	w.Expect(w.platform.changes()).To(Equal(1))
}

// TestReconcile_withoutACluster has nobody to remember, and nobody to tell.
func TestReconcile_withoutACluster(t *testing.T) {
	w := newTelegram(t)
	c := w.controller
	c.Projects, c.Remember, c.Set, c.Withdraw = nil, nil, nil, nil
	w.Expect(c.reconcile(t.Context())).To(Equal(soonAfter))
	w.edit(func(s *settings.Settings) { s.BaseURL = "https://new.example.com" })
	c.reconcile(t.Context())
	w.Expect(w.platform.callback).To(HavePrefix("https://new.example.com/"), "this process knows what it registered")
	w.edit(func(s *settings.Settings) { s.Telegram = nil })
	c.reconcile(t.Context())
	w.Expect(w.platform.callback).To(BeEmpty())
}

func TestReconcile_endOfTheTerm(t *testing.T) {
	w := newTelegram(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.platform.err = context.Canceled
	w.Expect(w.controller.reconcile(ctx)).To(BeZero())
	w.Expect(w.conditions).To(BeEmpty(), "that is no trouble")
}
