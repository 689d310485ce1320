package telegram

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	"github.com/prometheus/common/expfmt"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/texts"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// newSession returns a project with a page, and a request of LevelSession, half a minute after it was made.
func newSession(t testing.TB, edits ...func(*verification.Initiation)) (*world, verification.Initiated) {
	t.Helper()
	w := newWorld(t)
	w.settings.BaseURL, w.settings.Page = "https://verify.shop.example", &settings.Page{ReturnURLs: []string{"https://shop.example"}}
	w.settings.Purposes = settings.FromProject(&verifyv1.VerificationProject{Spec: verifyv1.VerificationProjectSpec{
		Purposes: []verifyv1.Purpose{{Name: "sign-in", Title: "Sign in to your account"}},
	}}, settings.Secrets{}).Purposes
	return w, w.startSession("golden", edits...)
}

func (w *world) startSession(key string, edits ...func(*verification.Initiation)) verification.Initiated {
	w.t.Helper()
	number, err := phone.FromE164(claimed)
	w.Expect(err).NotTo(HaveOccurred())
	in := verification.Initiation{
		Phone: number, Method: verification.Telegram, KeyName: "backend", KeyHash: sha256.Sum256([]byte("key")), TTL: 10 * time.Minute,
		IdempotencyKey: key, HasIdempotencyKey: true, ClientData: verification.ClientData{ReturnURL: "https://shop.example/account"},
		Terms: verification.Terms{Level: verification.LevelSession, Purpose: "sign-in", Browser: "SAFARI/IOS"},
	}
	for _, edit := range edits {
		edit(&in)
	}
	made, err := w.service.Initiate(w.t.Context(), in)
	w.Expect(err).NotTo(HaveOccurred())
	w.later(30 * time.Second)
	return made
}

// prove has the user send the code and share the contact, and returns the message after it.
func (w *world) prove(made verification.Initiated) sendMessage {
	w.t.Helper()
	w.Expect(w.accept(w.update(1, user, "/start "+made.Code.Grouped()))).To(Equal(messenger.OutcomeNeedContact))
	w.Expect(w.accept(w.contactUpdate(2, user, claimed))).To(Equal(messenger.OutcomeProven))
	return w.lastMessage()
}

func (w *world) lastMessage() sendMessage {
	w.t.Helper()
	all := w.api.got("sendMessage")
	w.Expect(all).NotTo(BeEmpty())
	m := sendMessage{ReplyMarkup: &replyKeyboard{}}
	w.Expect(json.Unmarshal(all[len(all)-1], &m)).To(Succeed())
	return m
}

// notMe returns the title of the only button of a message.
func (w *world) notMe(m sendMessage) string {
	w.t.Helper()
	rows := m.ReplyMarkup.(*replyKeyboard).Keyboard
	w.Expect(rows).To(HaveLen(1))
	w.Expect(rows[0]).To(HaveLen(1))
	w.Expect(rows[0][0].RequestContact).To(BeFalse())
	return rows[0][0].Text
}

func (w *world) read(made verification.Initiated) verification.Request {
	w.t.Helper()
	r, err := w.service.Status(w.t.Context(), made.Request.ID)
	w.Expect(err).NotTo(HaveOccurred())
	return r
}

func (w *world) codesOf(made verification.Initiated) verification.SessionCodes {
	w.t.Helper()
	r := w.read(made)
	codes, ok := w.current().SessionCodes(&r, w.now())
	w.Expect(ok).To(BeTrue())
	return codes
}

func (w *world) expectDeclined(made verification.Initiated, want bool) {
	w.t.Helper()
	r := w.read(made)
	w.Expect(r.IsProven()).To(BeTrue())
	w.Expect(!r.DeclinedAt().IsZero()).To(Equal(want))
	phase := verification.Pending
	if want {
		phase = verification.Expired
	}
	w.Expect(r.Phase).To(Equal(phase))
}

// TestSession_golden is the message at the proof, and the one to a prover who sends the code again.
func TestSession_golden(t *testing.T) {
	w, made := newSession(t)
	m := w.prove(made)
	r := w.read(made)
	w.Expect(r.Phase).To(Equal(verification.Pending))
	w.Expect(r.HintAt(w.now())).To(Equal(verification.HintAwaitingConfirmation))
	w.Expect(r.Actual.E164()).To(Equal(claimed))
	w.flush()
	sent := w.api.got("sendMessage")
	w.Expect(sent).To(HaveLen(2), "the prompt, and this before the update was acknowledged")
	w.Expect(sent[1]).To(MatchJSON(golden(t, "out/sendMessage_session")))
	codes := w.codesOf(made)
	w.Expect(m.Text).To(ContainSubstring(codes.Digits.Reveal()))
	w.Expect(m.Text).To(ContainSubstring("/return?code=" + codes.Return.Reveal()))

	w.Expect(w.accept(w.update(3, user, "/start "+made.Code.Grouped()))).To(Equal(messenger.OutcomeProven))
	w.Expect(w.api.got("sendMessage")[2]).To(Equal(sent[1]))
	w.Expect(w.accept(w.contactUpdate(4, user, claimed))).To(Equal(messenger.OutcomeProven), "the contact again")
	w.Expect(w.api.got("sendMessage")[3]).To(Equal(sent[1]))
}

// TestSession_replyFails has the process end, or Telegram fail, between the proof and the message: a copy at another replica sends it.
func TestSession_replyFails(t *testing.T) {
	w, made := newSession(t)
	w.accept(w.update(1, user, "/start "+goldenCode))
	contact := w.contactUpdate(2, user, claimed)
	w.api.failing(always("sendMessage", "error_500"))
	w.Expect(w.post(contact).Code).To(Equal(http.StatusServiceUnavailable))
	proven := w.read(made)
	w.Expect(proven.IsProven()).To(BeTrue(), "what is proven is stored")
	w.Expect(w.outcomes()).To(HaveKey(messenger.OutcomePromptFailed))
	w.api.failing(nil)
	before := w.api.got("sendMessage")
	w.Expect(w.postTo(w.another(), contact, WebhookSecret([]byte(botToken), projectName)).Code).To(Equal(http.StatusOK))
	after := w.api.got("sendMessage")
	w.Expect(after).To(HaveLen(len(before) + 1))
	w.Expect(after[len(before)]).To(Equal(before[len(before)-1]), "the same digits")
	w.Expect(w.read(made)).To(Equal(proven), "a copy writes nothing")
}

// TestSession_blocked: where Telegram will never deliver the message, its update is done with.
func TestSession_blocked(t *testing.T) {
	w, made := newSession(t)
	w.accept(w.update(1, user, "/start "+goldenCode))
	w.api.failing(always("sendMessage", "error_403"))
	w.Expect(w.accept(w.contactUpdate(2, user, claimed))).To(Equal(messenger.OutcomeNoPrompt))
	r := w.read(made)
	w.Expect(r.IsProven()).To(BeTrue())
}

// TestSession_polled has the message fail at first in a project that polls: the update is fetched again.
func TestSession_polled(t *testing.T) {
	bubble(t, PollerOptions{}, func(p *polling) {
		made := p.startSessionNow()
		p.api.arrive(10, p.update(10, user, "/start "+made.Code.Grouped()))
		p.start()
		failures := 2
		p.api.failing(func(method string, _ []byte) string {
			if method != "sendMessage" || failures == 0 {
				return ""
			}
			failures--
			return "error_500"
		})
		p.api.arrive(11, p.contactUpdate(11, user, claimed))
		p.pass(2 * maxBackoff)
		p.Expect(p.api.waiting()).To(BeZero())
		sent := p.api.got("sendMessage")
		p.Expect(sent).To(HaveLen(4), "the prompt, two that failed, and one more")
		p.Expect(sent[3]).To(Equal(sent[1]))
	})
}

// startSessionNow is startSession in a bubble.
func (p *polling) startSessionNow() verification.Initiated {
	p.t.Helper()
	number, err := phone.FromE164(claimed)
	p.Expect(err).NotTo(HaveOccurred())
	made, err := p.service.Initiate(p.t.Context(), verification.Initiation{
		Phone: number, Method: verification.Telegram, TTL: 10 * time.Minute, Terms: verification.Terms{Level: verification.LevelSession},
	})
	p.Expect(err).NotTo(HaveOccurred())
	return made
}

// TestSession_sendPolicy: the message is no mere reply, so no policy of the project keeps it back.
func TestSession_sendPolicy(t *testing.T) {
	for _, policy := range []settings.SendPolicy{settings.SendAlways, settings.SendOnTrouble, settings.SendNever} {
		w, made := newSession(t)
		w.settings.Replies.Send = policy
		w.Expect(w.prove(made).Text).To(ContainSubstring(w.codesOf(made).Digits.Reveal()))
	}
}

// TestSession_notMe: the button ends the request, once, and is taken away.
func TestSession_notMe(t *testing.T) {
	for name, text := range map[string]string{
		"pressed": "Not me", "typed": " not ME ", "in another language": "Nicht ich",
	} {
		t.Run(name, func(t *testing.T) {
			w, made := newSession(t)
			w.Expect(w.notMe(w.prove(made))).To(Equal("Not me"))
			w.Expect(w.accept(w.update(3, user, text))).To(Equal(messenger.OutcomeDeclined))
			w.expectDeclined(made, true)
			declined := w.read(made)
			w.Expect(w.accept(w.update(3, user, text))).To(Equal(messenger.OutcomeDeclined), "a copy")
			w.later(time.Hour)
			w.Expect(w.accept(w.update(4, user, text))).To(Equal(messenger.OutcomeDeclined), "once more")
			w.Expect(w.read(made)).To(Equal(declined))
			w.flush()
			sent := w.api.got("sendMessage")
			w.Expect(sent).To(HaveLen(3))
			w.Expect(string(sent[2])).To(And(ContainSubstring(english.Declined), ContainSubstring(`"remove_keyboard":true`)))
		})
	}
}

// TestSession_notMeByOthers: no other user, chat or kind of update ends a proven request.
func TestSession_notMeByOthers(t *testing.T) {
	edit := func(old, replaced string) func(*world) []byte {
		return func(w *world) []byte {
			return []byte(strings.Replace(string(w.update(9, user, "Not me")), old, replaced, 1))
		}
	}
	for name, c := range map[string]struct {
		update func(*world) []byte
		want   messenger.Outcome
	}{
		"another user":       {func(w *world) []byte { return w.update(9, stranger, "Not me") }, messenger.OutcomeNoCode},
		"in a group":         {edit(`"type":"private"`, `"type":"group"`), messenger.OutcomeNotPrivate},
		"in another chat":    {edit(`"chat":{"id":7304118825`, `"chat":{"id":42`), messenger.OutcomeNotPrivate},
		"forwarded":          {edit(`"text"`, `"forward_origin":{"type":"user"},"text"`), messenger.OutcomeForwarded},
		"edited":             {edit(`"text"`, `"edit_date":1,"text"`), messenger.OutcomeIndirect},
		"of a bot":           {edit(`"is_bot":false`, `"is_bot":true`), messenger.OutcomeBot},
		"by a query":         {edit(`"message"`, `"callback_query"`), messenger.OutcomeOtherUpdate},
		"in a longer text":   {func(w *world) []byte { return w.update(9, user, "Not me, or is it?") }, messenger.OutcomeNoCode},
		"behind a command":   {func(w *world) []byte { return w.update(9, user, "/start Not me") }, messenger.OutcomeNoCode},
		"as another command": {func(w *world) []byte { return w.update(9, user, "/notme") }, messenger.OutcomeOtherCommand},
	} {
		t.Run(name, func(t *testing.T) {
			w, made := newSession(t)
			w.accept(w.update(1, stranger, "/start "+goldenCode)) // bound too, and dropped by the proof
			w.prove(made)
			w.Expect(w.accept(c.update(w))).To(Equal(c.want))
			w.expectDeclined(made, false)
		})
	}
}

// TestSession_notMeOfPossession: a request that is not proven, or not of that level, is not ended by the words.
func TestSession_notMeOfPossession(t *testing.T) {
	for _, edit := range []func(*verification.Initiation){
		func(*verification.Initiation) {}, func(in *verification.Initiation) { in.Terms = verification.Terms{} },
	} {
		w, made := newSession(t, edit)
		w.Expect(w.accept(w.update(1, user, "/start "+goldenCode))).To(Equal(messenger.OutcomeNeedContact))
		w.Expect(w.accept(w.update(2, user, "Not me"))).To(Equal(messenger.OutcomeNoCode), "as any other text")
		w.Expect(w.phase(made.Request.ID)).To(Equal(verification.Pending))
		w.flush()
		w.Expect(w.lastMessage().Text).To(Equal(textUnknown))
	}
}

// TestSession_notMeTooLate: after the confirmation it changes nothing, and the reply says what to do; after the request's time it says
// that nothing was confirmed.
func TestSession_notMeTooLate(t *testing.T) {
	for _, policy := range []settings.SendPolicy{settings.SendAlways, settings.SendOnTrouble} {
		w, made := newSession(t)
		w.settings.Replies.Send = policy
		w.prove(made)
		entered, _ := verification.ParseSessionCode(w.codesOf(made).Digits.Reveal())
		_, err := w.service.ConfirmSession(t.Context(), made.Request.ID, false, entered,
			func(r *verification.Request) verification.CodeSecrets { return w.settings.CodeSecrets(r, w.now()) }, 0)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(w.accept(w.update(3, user, "Not me"))).To(Equal(messenger.OutcomeVerified))
		w.Expect(w.phase(made.Request.ID)).To(Equal(verification.Verified))
		w.flush()
		w.Expect(w.lastMessage().Text).To(Equal(texts.Fill(textVerified, "Example Shop")))
	}
	w, made := newSession(t)
	w.prove(made)
	w.later(time.Hour)
	w.Expect(w.accept(w.update(3, user, "Not me"))).To(Equal(messenger.OutcomeDeclined))
	r := w.read(made)
	w.Expect(r.DeclinedAt()).To(BeTemporally("==", w.now()), "after the end it still cools the number down")
	w.flush()
	w.Expect(w.lastMessage().Text).To(Equal(english.Declined))
}

// rotatedToken returns a token that was replaced a minute ago by the test's clock.
func rotatedToken(t *testing.T, now time.Time, before, after string) settings.Secret {
	t.Helper()
	g, dir := NewWithT(t), t.TempDir()
	g.Expect(os.Mkdir(filepath.Join(dir, "bot"), 0o750)).To(Succeed())
	write := func(value string) {
		g.Expect(os.WriteFile(filepath.Join(dir, "bot", "token"), []byte(value), 0o600)).To(Succeed())
	}
	p := &verifyv1.VerificationProject{Spec: verifyv1.VerificationProjectSpec{Telegram: &verifyv1.Telegram{
		BotUsername: "example_shop_bot", BotTokenSecretRef: verifyv1.SecretKeyRef{Name: "bot", Key: "token"},
	}}}
	p.Default()
	files := settings.NewSecretFiles(dir)
	write(before)
	first := files.Read(p, settings.Secrets{}, now.Add(-2*time.Minute))
	write(after)
	token := settings.FromProject(p, files.Read(p, first, now.Add(-time.Minute))).Telegram.BotToken
	g.Expect(token.Accepted(now)).To(HaveLen(2))
	return token
}

// TestSession_rotatedToken replaces the bot's token between the message and the answer.
func TestSession_rotatedToken(t *testing.T) {
	w, made := newSession(t)
	w.prove(made)
	renewed := *w.settings
	renewed.Telegram = &settings.Telegram{BotUsername: "example_shop_bot", BotToken: rotatedToken(t, w.now(), botToken, "5021:another_token_of_the_bot_012345")}
	w.replaced.Store(&renewed)
	w.Expect(w.postTo(w.channel, w.update(3, user, "Not me"), WebhookSecret(renewed.Telegram.BotToken.Current(), projectName)).Code).
		To(Equal(http.StatusOK))
	w.expectDeclined(made, true)
}

// TestSession_everyLanguage: message and button are in the language of the request, and the button counts there.
func TestSession_everyLanguage(t *testing.T) {
	for _, locale := range texts.Languages() {
		w, made := newSession(t, func(in *verification.Initiation) { in.Locale, in.DisplayName = locale, strings.Repeat("n", 253) })
		w.settings.BaseURL = "https://" + strings.Repeat("x", 504)
		own := texts.BuiltIn().In(locale)
		m := w.prove(made)
		codes := w.codesOf(made)
		values := texts.SessionMessage{
			Name: strings.Repeat("n", 253), Purpose: "Sign in to your account", Browser: "Safari, iOS", Digits: codes.Digits.Reveal(),
		}
		values.Link = w.settings.BaseURL + "/v/canaryticket/return?code=" + codes.Return.Reveal()
		w.Expect(m.Text).To(Equal(own.FillSession(values)), locale)
		w.Expect(utf8.RuneCountInString(m.Text)).To(BeNumerically("<=", maxTextCharacters))
		w.Expect(w.accept(w.update(4, user, w.notMe(m)))).To(Equal(messenger.OutcomeDeclined), locale)
		w.flush()
		w.Expect(w.lastMessage().Text).To(Equal(own.Declined))
	}
}

// TestSession_leaksNothing looks for session codes and links in logs, metrics and answers.
func TestSession_leaksNothing(t *testing.T) {
	for _, answer := range []string{"", "error_403", "error_500"} {
		w, made := newSession(t)
		w.accept(w.update(1, user, "/start "+goldenCode))
		w.api.failing(always("sendMessage", answer))
		var shown strings.Builder
		for _, update := range [][]byte{w.contactUpdate(2, user, claimed), w.update(3, user, "/start "+goldenCode), w.update(4, user, "Not me")} {
			a := w.post(update)
			shown.WriteString(a.Body.String())
		}
		w.backend.Fail(errors.New("away"))
		w.post(w.update(5, user, "Not me"))
		w.flush()
		families, err := w.registry.Gather()
		w.Expect(err).NotTo(HaveOccurred())
		for _, f := range families {
			_, err := expfmt.MetricFamilyToText(&shown, f)
			w.Expect(err).NotTo(HaveOccurred())
		}
		shown.Write(w.logs.Contents())
		w.backend.Fail(nil)
		codes := w.codesOf(made)
		w.Expect(shown.String()).To(ContainSubstring("declined"))
		for _, canary := range []string{codes.Digits.Reveal(), codes.Return.Reveal(), "canary", made.Request.ID, "4915", goldenCode, "Sign in"} {
			w.Expect(strings.Contains(shown.String(), canary)).To(BeFalse(), canary)
		}
	}
}
