package whatsapp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/texts"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// returnURL is where the page of the tests' requests leads back to.
const returnURL = "https://books.example/account"

// newSession returns a project with a page, and a request of LevelSession for the user's number, a minute after it was made.
func newSession(t testing.TB) (*fixture, verification.Initiated) {
	t.Helper()
	return newSessionWith(t, func(*verification.Initiation) {})
}

func newSessionWith(t testing.TB, edit func(*verification.Initiation)) (*fixture, verification.Initiated) {
	t.Helper()
	f := newFixture(t)
	f.change(func(s *settings.Settings) {
		s.WhatsApp.AcceptAnyText = false
		s.Purposes = purposes("sign-in", "Sign in to your account")
		s.BaseURL, s.Page = "https://verify.books.example", &settings.Page{ReturnURLs: []string{"https://books.example"}}
	})
	number, err := phone.ParseWhatsApp(user)
	f.Expect(err).NotTo(HaveOccurred())
	in := verification.Initiation{
		Phone: number, Method: verification.WhatsApp, IdempotencyKey: "first", HasIdempotencyKey: true, TTL: 10 * time.Minute,
		DisplayName: f.settings.DisplayName, ClientData: verification.ClientData{ReturnURL: returnURL},
		Terms: verification.Terms{Level: verification.LevelSession, Purpose: "sign-in", Browser: "CHROME/WINDOWS"},
	}
	edit(&in)
	made, err := f.service.Initiate(t.Context(), in)
	f.Expect(err).NotTo(HaveOccurred())
	f.clock.SetTime(started.Add(time.Minute))
	return f, made
}

// purposes returns those of a project with one.
func purposes(name, title string) map[string]settings.Purpose {
	p := &verifyv1.VerificationProject{Spec: verifyv1.VerificationProjectSpec{
		Purposes: []verifyv1.Purpose{{Name: name, Title: verifyv1.PurposeTitle(title)}},
	}}
	return settings.FromProject(p, settings.Secrets{}).Purposes
}

// preparedWebhook returns the webhook of the prepared text.
func (f *fixture) preparedWebhook(made verification.Initiated) []byte {
	return webhookOf(textOf(ExpectedText(f.settings, &made.Request, made.Code), nil))
}

// prove sends the prepared text, and returns the message with the session codes.
func (f *fixture) prove(made verification.Initiated) seenCall {
	f.t.Helper()
	f.Expect(f.post(f.preparedWebhook(made)).Code).To(Equal(http.StatusOK))
	calls := f.graph.all()
	return calls[len(calls)-1]
}

// declineBy posts a tap on a button.
func (f *fixture) declineBy(button string, more object) {
	f.t.Helper()
	f.Expect(f.post(webhookOf(tapOf(button, more))).Code).To(Equal(http.StatusOK))
}

// replica returns the hook of another replica.
func (f *fixture) replica() *Hook { return f.failing(func(int64, string) error { return nil }) }

// codesOf returns the session codes of a request.
func (f *fixture) codesOf(made verification.Initiated) verification.SessionCodes {
	f.t.Helper()
	state := f.state(made.Request.ID)
	codes, ok := f.settings.SessionCodes(&state, f.clock.Now())
	f.Expect(ok).To(BeTrue())
	return codes
}

// confirm has the client redeem a code.
func (f *fixture) confirm(made verification.Initiated, code string) {
	f.t.Helper()
	entered, ok := verification.ParseSessionCode(code)
	f.Expect(ok).To(BeTrue())
	secrets := func(r *verification.Request) verification.CodeSecrets {
		return f.settings.CodeSecrets(r, f.clock.Now())
	}
	_, err := f.service.ConfirmSession(f.t.Context(), made.Request.ID, false, entered, secrets, 0)
	f.Expect(err).NotTo(HaveOccurred())
}

// notMeOf returns the button below the session codes.
func (f *fixture) notMeOf(c seenCall) string {
	f.t.Helper()
	var m outgoing
	f.Expect(json.Unmarshal([]byte(c.Body), &m)).To(Succeed())
	f.Expect(m.Interactive.Action.Buttons).To(HaveLen(1))
	button := m.Interactive.Action.Buttons[0].Reply
	f.Expect(button.ID).To(MatchRegexp(`^notme:[a-z0-9]+:[0-9a-f]{64}$`))
	f.Expect(len(button.ID)).To(BeNumerically("<=", 256))
	return button.ID
}

// expectDeclined expects a request to be declined, or to be still proven.
func (f *fixture) expectDeclined(made verification.Initiated, want bool) {
	f.t.Helper()
	state := f.state(made.Request.ID)
	f.Expect(state.IsProven()).To(BeTrue())
	f.Expect(!state.DeclinedAt().IsZero()).To(Equal(want))
	phase := verification.Pending
	if want {
		phase = verification.Expired
	}
	f.Expect(state.Phase).To(Equal(phase))
}

// TestSession_golden is the message at the proof.
func TestSession_golden(t *testing.T) {
	f, made := newSession(t)
	f.prove(made)
	state := f.state(made.Request.ID)
	f.Expect(state.Phase).To(Equal(verification.Pending))
	f.Expect(state.IsProven()).To(BeTrue())
	f.Expect(state.HintAt(f.clock.Now())).To(Equal(verification.HintAwaitingConfirmation))
	f.Expect(f.outcomes()).To(Equal(map[messenger.Outcome]int{messenger.OutcomeProven: 1}))
	calls := f.sendReplies()
	f.Expect(calls).To(HaveLen(1), "sent before the webhook was answered, and nothing after it")
	f.Expect(calls[0].Body).To(MatchJSON(golden(t, "out/session_codes")))
	codes := f.codesOf(made)
	f.Expect(calls[0].text()).To(And(ContainSubstring(codes.Digits.Reveal()), ContainSubstring("/return?code="+codes.Return.Reveal())))
	sources, err := os.ReadFile("testdata/README.md")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(string(sources)).To(ContainSubstring("out/session_codes"))

	f.confirm(made, codes.Digits.Reveal())
	f.expectVerified(f.state(made.Request.ID), true)
}

// hiddenSender is who proves a number that Meta does not report.
var hiddenSender = object{"from": nil, "from_user_id": hiddenUser}

// sessionFlows are the ways to prove a number. webhook returns the one that proves it, after all that comes before.
var sessionFlows = map[string]struct {
	webhook   func(f *fixture, made verification.Initiated) []byte
	recipient string
	assurance verification.Assurance
	tapper    object
}{
	"the prepared text": {(*fixture).preparedWebhook, `"to":"` + user + `"`, verification.AssuranceUsual, nil},
	"a tap after another text": {func(f *fixture, _ verification.Initiated) []byte {
		f.say(user, firstCode, "1")
		return webhookOf(tapOf(f.buttonOf(f.graph.all()[0]), nil))
	}, `"to":"` + user + `"`, verification.AssuranceUsual, nil},
	"a shared contact":                       {sharedWebhook, `"recipient":"` + hiddenUser + `"`, verification.AssuranceSharedContact, hiddenSender},
	"a shared contact, which shows a number": {sharedWebhook, `"recipient":"` + hiddenUser + `"`, verification.AssuranceSharedContact, object{"from_user_id": hiddenUser}},
	"an echo": {func(f *fixture, _ verification.Initiated) []byte {
		f.useEcho()
		f.sendHidden(firstCode, hiddenUser)
		confirm, _ := f.echoButtons(f.graph.all()[0])
		return webhookOf(echoTapOf(confirm, nil))
	}, `"recipient":"` + hiddenUser + `"`, verification.AssuranceEcho, hiddenSender},
}

func sharedWebhook(f *fixture, _ verification.Initiated) []byte {
	f.acceptContacts()
	f.sendHidden(firstCode, hiddenUser)
	return webhookOf(contactOf(nil, nil))
}

// TestSession_flows proves the number in each way, and declines.
func TestSession_flows(t *testing.T) {
	for name, c := range sessionFlows {
		t.Run(name, func(t *testing.T) {
			f, made := newSession(t)
			f.Expect(f.post(c.webhook(f, made)).Code).To(Equal(http.StatusOK))
			state := f.state(made.Request.ID)
			f.Expect(state.IsProven()).To(BeTrue())
			f.Expect(state.Phase).To(Equal(verification.Pending))
			f.Expect(state.Assurance).To(Equal(c.assurance))
			f.Expect(f.outcomes()).To(HaveKeyWithValue(messenger.OutcomeProven, 1))
			calls := f.sendReplies()
			sent := calls[len(calls)-1]
			f.Expect(sent.Body).To(ContainSubstring(c.recipient))
			f.Expect(sent.text()).To(ContainSubstring(f.codesOf(made).Digits.Reveal()))
			f.Expect(sent.text()).To(ContainSubstring("/return?code=" + f.codesOf(made).Return.Reveal()))

			f.declineBy(f.notMeOf(sent), c.tapper)
			f.expectDeclined(made, true)
			f.Expect(f.outcomes()).To(HaveKeyWithValue(messenger.OutcomeDeclined, 1))
			replies := f.sendReplies()[len(calls):]
			f.Expect(replies).To(HaveLen(1))
			f.Expect(replies[0].text()).To(Equal(textDeclined))
		})
	}
}

// TestSession_replyFails has the process end, or Meta fail, between the proof and the message: a copy at another replica sends it.
func TestSession_replyFails(t *testing.T) {
	for name, c := range sessionFlows {
		t.Run(name, func(t *testing.T) {
			f, made := newSession(t)
			webhook := c.webhook(f, made)
			f.graph.answers(http.StatusInternalServerError, []byte(`{}`))
			f.Expect(f.post(webhook).Code).To(Equal(http.StatusServiceUnavailable))
			proven := f.state(made.Request.ID)
			f.Expect(proven.IsProven()).To(BeTrue(), "what is proven is stored")
			f.Expect(f.outcomes()).To(HaveKeyWithValue(messenger.OutcomePromptFailed, 1))

			f.graph.answers(http.StatusOK, golden(t, "answers/message"))
			before := f.graph.all()
			other := f.replica()
			for range 3 {
				f.Expect(f.postTo(other, webhook, sign(webhook, appSecret)).Code).To(Equal(http.StatusOK))
			}
			calls := f.graph.all()
			f.Expect(calls).To(HaveLen(len(before)+1), "copies are answered once")
			f.Expect(calls[len(before)].Body).To(Equal(before[len(before)-1].Body), "the same digits and the same button")
			f.Expect(f.post(webhook).Code).To(Equal(http.StatusOK))
			f.Expect(f.graph.all()).To(HaveLen(len(before)+2), "the replica that failed tries again")
			f.Expect(f.state(made.Request.ID)).To(Equal(proven), "no copy writes")
		})
	}
}

// TestSession_undeliverable: where Meta will never deliver the message, its webhook is done with.
func TestSession_undeliverable(t *testing.T) {
	f, made := newSession(t)
	f.graph.answers(http.StatusBadRequest, []byte(`{"error":{"code":131026}}`))
	f.prove(made)
	f.Expect(f.outcomes()).To(Equal(map[messenger.Outcome]int{messenger.OutcomeNoPrompt: 1}))
	f.Expect(f.state(made.Request.ID).ProvenAt).NotTo(BeZero())
}

// TestSession_again: a prover who sends the message once more gets the same message; a stranger with the code gets none.
func TestSession_again(t *testing.T) {
	f, made := newSession(t)
	first := f.prove(made)
	f.say(user, ExpectedText(f.settings, &made.Request, made.Code), "2")
	f.Expect(f.graph.all()).To(HaveLen(1), "at once")
	f.clock.SetTime(f.clock.Now().Add(promptPause))
	f.say(user, "my code: "+firstCode, "3")
	f.say("16505550000", ExpectedText(f.settings, &made.Request, made.Code), "4")
	calls := f.sendReplies()
	f.Expect(calls).To(HaveLen(3))
	again := strings.Split(calls[1].text(), "\n")
	f.Expect(again).To(Equal(strings.Split(first.text(), "\n")))
	f.Expect(f.notMeOf(calls[1])).To(Equal(f.notMeOf(first)))
	f.Expect(calls[2].text()).To(Equal(textWrongNumber))
}

// TestSession_sendPolicy: the message is no mere reply, so no policy of the project keeps it back.
func TestSession_sendPolicy(t *testing.T) {
	for _, policy := range []settings.SendPolicy{settings.SendAlways, settings.SendOnTrouble, settings.SendNever} {
		f, made := newSession(t)
		f.change(func(s *settings.Settings) { s.Replies.Send = policy })
		f.Expect(f.prove(made).text()).To(ContainSubstring(f.codesOf(made).Digits.Reveal()))
	}
}

// TestSession_longest has the longest of everything in every language: the link is left out, and nothing is cut.
func TestSession_longest(t *testing.T) {
	for _, locale := range texts.Languages() {
		f, made := newSessionWith(t, func(in *verification.Initiation) {
			in.Locale, in.DisplayName, in.Terms.Browser = locale, strings.Repeat("n", 253), "SAMSUNG/CHROMEOS"
		})
		f.change(func(s *settings.Settings) {
			s.BaseURL, s.Purposes = "https://"+strings.Repeat("x", 504), purposes("sign-in", strings.Repeat("p", 64))
		})
		text := f.prove(made).text()
		f.Expect(utf8.RuneCountInString(text)).To(BeNumerically("<=", maxPromptRunes), locale)
		f.Expect(text).To(Equal(texts.BuiltIn().In(locale).FillSession(texts.SessionMessage{
			Name: strings.Repeat("n", 253), Purpose: strings.Repeat("p", 64), Browser: "Samsung Internet, ChromeOS",
			Digits: f.codesOf(made).Digits.Reveal(),
		})), locale)
	}
}

// TestSession_notMeByOthers: only the prover ends a proven request; other senders learn nothing.
func TestSession_notMeByOthers(t *testing.T) {
	raw := func(kind string, content object) object { return messageOf(kind, content, nil) }
	for name, c := range map[string]struct {
		tap  func(button string) object
		want messenger.Outcome
	}{
		"by another number":        {func(b string) object { return tapOf(b, object{"from": "16505550000"}) }, messenger.OutcomeTapRefused},
		"by a hidden number":       {func(b string) object { return tapOf(b, hiddenSender) }, messenger.OutcomeTapRefused},
		"by another, with user id": {func(b string) object { return tapOf(b, object{"from": "16505550000", "from_user_id": hiddenUser}) }, messenger.OutcomeTapRefused},
		"of another request": {func(b string) object {
			return tapOf(declinePrefix+secondID()+b[strings.LastIndexByte(b, ':'):], nil)
		}, messenger.OutcomeTapRefused},
		"with a changed token": {func(b string) object { return tapOf(b[:len(b)-1]+"g", nil) }, messenger.OutcomeTapRefused},
		"with half a token":    {func(b string) object { return tapOf(b[:len(b)-32], nil) }, messenger.OutcomeTapRefused},
		"without a token":      {func(b string) object { return tapOf(b[:strings.LastIndexByte(b, ':')+1], nil) }, messenger.OutcomeTapRefused},
		"without anything":     {func(string) object { return tapOf(declinePrefix, nil) }, messenger.OutcomeTapRefused},
		"as a confirmation":    {func(b string) object { return tapOf(confirmationPrefix+strings.TrimPrefix(b, declinePrefix), nil) }, messenger.OutcomeTapRefused},
		"as that of an echo":   {func(b string) object { return tapOf(echoConfirmPrefix+strings.TrimPrefix(b, declinePrefix), nil) }, messenger.OutcomeTapRefused},
		"typed":                {func(b string) object { return textOf(b, nil) }, messenger.OutcomeNoCode},
		"as a list": {func(b string) object {
			return raw("interactive", object{"type": "list_reply", "list_reply": object{"id": b, "title": "Not me"}})
		}, messenger.OutcomeNoCode},
		"as a template button": {func(b string) object { return raw("button", object{"payload": b, "text": "Not me"}) }, messenger.OutcomeNoCode},
		"forwarded":            {func(b string) object { return tapOf(b, object{"context": object{"forwarded": true}}) }, messenger.OutcomeForwarded},
		"in a group":           {func(b string) object { return tapOf(b, object{"group_id": "1"}) }, messenger.OutcomeNotPrivate},
		"of the business":      {func(b string) object { return tapOf(b, object{"from": businessNumber}) }, messenger.OutcomeEcho},
	} {
		for _, hiddenNumbers := range []settings.HiddenNumbers{settings.HiddenRefused, settings.HiddenShared, settings.HiddenEcho} {
			t.Run(fmt.Sprintf("%s, %v", name, hiddenNumbers), func(t *testing.T) {
				f, made := newSession(t)
				f.change(func(s *settings.Settings) { s.WhatsApp.HiddenNumbers = hiddenNumbers })
				button := f.notMeOf(f.prove(made))
				before := f.state(made.Request.ID)
				f.Expect(f.post(webhookOf(c.tap(button))).Code).To(Equal(http.StatusOK))
				f.Expect(f.outcomes()).To(HaveKeyWithValue(c.want, 1))
				f.Expect(f.state(made.Request.ID)).To(Equal(before))
				if c.want == messenger.OutcomeTapRefused {
					calls := f.sendReplies()
					f.Expect(calls[len(calls)-1].text()).To(Equal(textTapRefused))
				}
			})
		}
	}
}

// TestSession_notMeByTheProverAlone: however the number was proven, the button counts from no other account.
func TestSession_notMeByTheProverAlone(t *testing.T) {
	for name, c := range sessionFlows {
		t.Run(name, func(t *testing.T) {
			f, made := newSession(t)
			f.Expect(f.post(c.webhook(f, made)).Code).To(Equal(http.StatusOK))
			calls := f.graph.all()
			button := f.notMeOf(calls[len(calls)-1])
			f.declineBy(button, object{"from": nil, "from_user_id": otherHidden})
			// A button of their own does not make other senders the prover.
			for key, sender := range map[string]object{
				otherHidden: {"from": nil, "from_user_id": otherHidden}, "16505550000": {"from": "16505550000"},
			} {
				id := made.Request.ID
				f.declineBy(declinePrefix+id+":"+notMeToken([]byte(appSecret), id, key, f.state(id).CreatedAt), sender)
			}
			f.declineBy(button, object{"from": "16505550000", "from_user_id": hiddenUser})
			f.expectDeclined(made, false)
			f.declineBy(button, c.tapper)
			f.expectDeclined(made, true)
		})
	}
}

// TestSession_notMeTwice: copies of the tap, and the next one, change nothing and are not answered again.
func TestSession_notMeTwice(t *testing.T) {
	f, made := newSession(t)
	button := f.notMeOf(f.prove(made))
	f.declineBy(button, nil)
	declined := f.state(made.Request.ID)
	f.declineBy(button, nil)
	f.clock.SetTime(f.clock.Now().Add(time.Hour))
	f.declineBy(button, object{"id": "wamid.later"})
	tap := webhookOf(tapOf(button, nil))
	f.Expect(f.postTo(f.replica(), tap, sign(tap, appSecret)).Code).To(Equal(http.StatusOK))
	f.Expect(f.state(made.Request.ID)).To(Equal(declined))
	f.Expect(f.sendReplies()).To(HaveLen(2))
}

// TestSession_notMeTooLate: after the confirmation it changes nothing, and the reply says what to do; after the request's time it says
// that nothing was confirmed.
func TestSession_notMeTooLate(t *testing.T) {
	for _, policy := range []settings.SendPolicy{settings.SendAlways, settings.SendOnTrouble, settings.SendNever} {
		f, made := newSession(t)
		f.change(func(s *settings.Settings) { s.Replies.Send = policy })
		button := f.notMeOf(f.prove(made))
		f.confirm(made, f.codesOf(made).Return.Reveal())
		verified := f.state(made.Request.ID)
		f.declineBy(button, nil)
		f.declineBy(button, object{"id": "wamid.later"})
		f.Expect(f.state(made.Request.ID)).To(Equal(verified))
		calls := f.sendReplies()
		if policy == settings.SendNever {
			f.Expect(calls).To(HaveLen(1))
			continue
		}
		f.Expect(calls).To(HaveLen(2))
		f.Expect(calls[1].text()).To(Equal(saidVerified))
	}
	f, made := newSession(t)
	button := f.notMeOf(f.prove(made))
	f.clock.SetTime(started.Add(time.Hour))
	f.declineBy(button, nil)
	f.declineBy(button, object{"id": "wamid.later"})
	state := f.state(made.Request.ID)
	f.Expect(state.DeclinedAt()).To(BeTemporally("==", f.clock.Now()), "after the end it still cools the number down")
	calls := f.sendReplies()
	f.Expect(calls).To(HaveLen(2))
	f.Expect(calls[1].text()).To(Equal(textDeclined))
}

// TestSession_rotatedSecret replaces the app secret between the message and the tap, and between the message and the code.
func TestSession_rotatedSecret(t *testing.T) {
	f, made := newSession(t)
	sent := f.prove(made)
	digits := f.codesOf(made).Digits.Reveal()
	f.change(func(s *settings.Settings) { s.WhatsApp.AppSecret = rotated(t, appSecret, "anothercanarysecret") })
	f.clock.SetTime(f.clock.Now().Add(promptPause))
	again := webhookOf(textOf(ExpectedText(f.settings, &made.Request, made.Code), object{"id": "wamid.2"}))
	f.Expect(f.postTo(f.hook, again, sign(again, "anothercanarysecret")).Code).To(Equal(http.StatusOK))
	f.Expect(f.graph.all()[1].Body).To(Equal(sent.Body), "as long as other replicas may not know the new one")

	entered, _ := verification.ParseSessionCode(digits)
	_, err := f.service.CheckSessionCode(t.Context(), made.Request.ID, entered,
		func(r *verification.Request) verification.CodeSecrets {
			return f.settings.CodeSecrets(r, f.clock.Now())
		}, 0)
	f.Expect(err).NotTo(HaveOccurred())
	tap := webhookOf(tapOf(f.notMeOf(sent), nil))
	f.Expect(f.postTo(f.hook, tap, sign(tap, "anothercanarysecret")).Code).To(Equal(http.StatusOK))
	f.expectDeclined(made, true)
}

// TestNotMeToken: each part of what a button is for changes it, and so does the purpose.
func TestNotMeToken(t *testing.T) {
	g, secret := NewWithT(t), []byte(appSecret)
	seen := map[string]bool{
		notMeToken(secret, "a", user, started):                         true,
		notMeToken([]byte("other"), "a", user, started):                true,
		notMeToken(secret, "b", user, started):                         true,
		notMeToken(secret, "a", hiddenUser, started):                   true,
		notMeToken(secret, "a", user, started.Add(time.Microsecond)):   true,
		echoToken(secret, "a", phone.Number{}, verification.Contact{}): true,
	}
	g.Expect(seen).To(HaveLen(6))
}

// TestSession_everyLanguage: the message and its button are in the language of the request, and fit.
func TestSession_everyLanguage(t *testing.T) {
	for _, locale := range texts.Languages() {
		f, made := newSessionWith(t, func(in *verification.Initiation) { in.Locale = locale })
		f.change(func(s *settings.Settings) { s.DisplayName = strings.Repeat("x", 253) })
		f.Expect(f.post(webhookOf(textOf(preparedIn(locale, made.Code), nil))).Code).To(Equal(http.StatusOK))
		sent := f.graph.all()[0]
		codes := f.codesOf(made)
		f.Expect(sent.text()).To(Equal(texts.BuiltIn().In(locale).FillSession(texts.SessionMessage{
			Name: "Ada's Books", Purpose: "Sign in to your account", Browser: "Chrome, Windows", Digits: codes.Digits.Reveal(),
			Link: "https://verify.books.example/v/canaryticket/return?code=" + codes.Return.Reveal(),
		})), locale)
		f.Expect(sent.Body).To(ContainSubstring(string(encode(texts.BuiltIn().In(locale).ButtonNotMe))))
		f.declineBy(f.notMeOf(sent), nil)
		f.expectDeclined(made, true)
		f.Expect(f.sendReplies()[1].text()).To(Equal(texts.BuiltIn().In(locale).Declined))
	}
}

// TestSession_leaksNothing looks for session codes, links and tokens in logs, metrics and answers.
func TestSession_leaksNothing(t *testing.T) {
	var all strings.Builder
	for _, status := range []int{http.StatusOK, http.StatusBadRequest, http.StatusInternalServerError} {
		f, made := newSession(t)
		f.graph.answers(status, []byte(`{"error":{"message":"canary","code":100}}`))
		w := f.post(f.preparedWebhook(made))
		fmt.Fprintln(&all, w.Code, w.Header(), w.Body.String())
		button := f.notMeOf(f.graph.all()[0])
		for _, id := range []string{button, button + "0"} {
			w = f.post(webhookOf(tapOf(id, nil)))
			fmt.Fprintln(&all, w.Code, w.Header(), w.Body.String())
		}
		f.sendReplies()
		families, err := f.registry.Gather()
		f.Expect(err).NotTo(HaveOccurred())
		for _, family := range families {
			all.WriteString(family.String())
		}
		all.Write(f.logs.Contents())
		codes := f.codesOf(made)
		token := button[strings.LastIndexByte(button, ':')+1:]
		for _, canary := range []string{codes.Digits.Reveal(), codes.Return.Reveal(), token, made.Request.ID, "canaryticket", user, firstCode, "Sign in"} {
			f.Expect(strings.Contains(all.String(), canary)).To(BeFalse(), canary)
		}
	}
	NewWithT(t).Expect(all.String()).To(And(ContainSubstring(`"outcome":"proven"`), ContainSubstring("delivered again"), ContainSubstring(`"declined"`)))
}
