package whatsapp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// newStrict returns a fixture with a request for the user's number, a minute later.
func newStrict(t *testing.T) (*fixture, verification.Initiated) {
	t.Helper()
	f := newFixture(t)
	f.strict()
	made := f.request("first", user, verification.WhatsApp)
	f.clock.SetTime(started.Add(time.Minute))
	return f, made
}

// say posts a text of a number, as a message of its own each time.
func (f *fixture) say(from, text, id string) {
	f.t.Helper()
	f.Expect(f.post(webhookOf(textOf(text, object{"from": from, "id": "wamid." + id}))).Code).To(Equal(http.StatusOK))
}

// tapOf returns a tap on a button.
func tapOf(id string, more object) object {
	return messageOf("interactive", object{"type": "button_reply", "button_reply": object{"id": id, "title": "Confirm"}}, more)
}

// buttonOf returns the id of the only button of a message.
func (f *fixture) buttonOf(c seenCall) string {
	f.t.Helper()
	var m outgoing
	f.Expect(json.Unmarshal([]byte(c.Body), &m)).To(Succeed())
	f.Expect(m.Type).To(Equal("interactive"))
	f.Expect(m.Interactive.Type).To(Equal("button"))
	f.Expect(m.Interactive.Action.Buttons).To(HaveLen(1))
	f.Expect(m.Interactive.Action.Buttons[0].Reply.Title).To(Equal("Confirm"))
	return m.Interactive.Action.Buttons[0].Reply.ID
}

// TestHook_relayedLinks: an attacker begins a verification of the user's number, and sends a link with another text in it.
func TestHook_relayedLinks(t *testing.T) {
	prepared := expectedText("Ada's Books", verification.NewCodeSpace(project).CodeFor([32]byte{}, "first"))
	for name, c := range map[string]struct {
		text string
		want messenger.Outcome
	}{
		"the prepared text":        {prepared, messenger.OutcomeVerified},
		"with a greeting":          {"Hi, " + prepared, messenger.OutcomeVerified},
		"auto-corrected":           {strings.ReplaceAll(prepared, "'", "’"), messenger.OutcomeVerified},
		"a parcel":                 {"Please release my parcel no. " + firstCode, messenger.OutcomeNeedConfirmation},
		"a bare code":              {firstCode, messenger.OutcomeNeedConfirmation},
		"another project's name":   {strings.ReplaceAll(prepared, "Ada's Books", "Parcels Ltd"), messenger.OutcomeNeedConfirmation},
		"the link itself":          {Link("+"+businessNumber, prepared), messenger.OutcomeNeedConfirmation},
		"hidden in a longer story": {"I would like to have my parcel released to my neighbour. " + prepared, messenger.OutcomeNeedConfirmation},
	} {
		t.Run(name, func(t *testing.T) {
			f, made := newStrict(t)
			f.say(user, c.text, "1")
			f.Expect(f.outcomes()).To(Equal(map[messenger.Outcome]int{c.want: 1}))
			f.expectVerified(f.state(made.Request.ID), c.want == messenger.OutcomeVerified)
			calls := f.sendReplies()
			f.Expect(calls).To(HaveLen(1))
			if c.want == messenger.OutcomeVerified {
				f.Expect(calls[0].text()).To(Equal(saidVerified))
				return
			}
			f.Expect(calls[0].text()).To(Equal(saidConfirm), "it names who asks")
			f.buttonOf(calls[0])
		})
	}
}

// TestHook_oneTextForManyRequests has one text with the codes of four requests.
func TestHook_oneTextForManyRequests(t *testing.T) {
	for _, strict := range []bool{false, true} {
		f := newFixture(t)
		if strict {
			f.strict()
		}
		ids, texts := []string{}, []string{}
		for _, key := range []string{"one", "two", "three", "four"} {
			made := f.request(key, user, verification.WhatsApp)
			ids, texts = append(ids, made.Request.ID), append(texts, expectedText("Ada's Books", made.Code))
		}
		f.clock.SetTime(started.Add(time.Minute))
		for range 3 {
			f.say(user, strings.Join(texts, " "), "1")
		}
		want := 1
		if strict {
			want = 0
		}
		f.Expect(f.verified(ids)).To(Equal(want), "strict: %t", strict)
	}
}

// TestHook_confirmation: the button verifies, once, for who was asked.
func TestHook_confirmation(t *testing.T) {
	f, made := newStrict(t)
	f.say(user, firstCode, "1")
	button := f.buttonOf(f.graph.all()[0])
	f.Expect(button).NotTo(ContainSubstring(firstCode))
	f.Expect(f.post(webhookOf(tapOf(button, nil))).Code).To(Equal(http.StatusOK))
	state := f.state(made.Request.ID)
	f.expectVerified(state, true)
	f.Expect(state.Actual.Digits()).To(Equal(user))
	f.Expect(state.Assurance).To(Equal(verification.AssuranceUsual))
	f.Expect(f.post(webhookOf(tapOf(button, nil))).Code).To(Equal(http.StatusOK), "a copy")
	f.Expect(f.outcomes()).To(Equal(map[messenger.Outcome]int{messenger.OutcomeNeedConfirmation: 1, messenger.OutcomeVerified: 2}))
	calls := f.sendReplies()
	f.Expect(calls).To(HaveLen(2))
	f.Expect(calls[1].text()).To(Equal(saidVerified))
}

// TestHook_forgedConfirmations: taps that must not verify, after the user was asked.
func TestHook_forgedConfirmations(t *testing.T) {
	for name, c := range map[string]struct {
		forge func(button string) object
		want  messenger.Outcome
	}{
		"the button":         {func(b string) object { return tapOf(b, nil) }, messenger.OutcomeVerified},
		"by another number":  {func(b string) object { return tapOf(b, object{"from": "16505550000"}) }, messenger.OutcomeTapRefused},
		"by a hidden number": {func(b string) object { return tapOf(b, object{"from": nil, "from_user_id": hiddenUser}) }, messenger.OutcomeTapRefused},
		"forwarded":          {func(b string) object { return tapOf(b, object{"context": object{"forwarded": true}}) }, messenger.OutcomeForwarded},
		"in a group":         {func(b string) object { return tapOf(b, object{"group_id": "1"}) }, messenger.OutcomeNotPrivate},
		"typed":              {func(b string) object { return textOf(b, nil) }, messenger.OutcomeNoCode},
		"as a list": {func(b string) object {
			return messageOf("interactive", object{"type": "list_reply", "list_reply": object{"id": b, "title": "Confirm"}}, nil)
		}, messenger.OutcomeNoCode},
		"under another type": {func(b string) object {
			return messageOf("interactive", object{"type": "list_reply", "button_reply": object{"id": b, "title": "Confirm"}}, nil)
		}, messenger.OutcomeNoCode},
		"as a template button": {func(b string) object { return messageOf("button", object{"payload": b, "text": "Confirm"}, nil) }, messenger.OutcomeNoCode},
		"without a token":      {func(b string) object { return tapOf(b[:strings.LastIndexByte(b, ':')+1], nil) }, messenger.OutcomeTapRefused},
		"with half a token":    {func(b string) object { return tapOf(b[:len(b)-8], nil) }, messenger.OutcomeTapRefused},
		"with a changed token": {func(b string) object { return tapOf(b[:len(b)-1]+"g", nil) }, messenger.OutcomeTapRefused},
		"without anything":     {func(string) object { return tapOf(confirmationPrefix, nil) }, messenger.OutcomeTapRefused},
		"in upper case":        {func(b string) object { return tapOf(strings.ToUpper(b), nil) }, messenger.OutcomeNoCode},
		"an hour old": {func(b string) object {
			return tapOf(b, object{"timestamp": strconv.FormatInt(started.Add(-time.Hour).Unix(), 10)})
		}, messenger.OutcomeTooLate},
		"without a time": {func(b string) object { return tapOf(b, object{"timestamp": nil}) }, messenger.OutcomeNoTime},
		"of the other request": {func(b string) object {
			other := verification.NewCodeSpace(project)
			id := other.RequestID(other.CodeFor([32]byte{}, "second"))
			return tapOf(confirmationPrefix+id+b[strings.LastIndexByte(b, ':'):], nil)
		}, messenger.OutcomeTapRefused},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.strict()
			made, second := f.request("first", user, verification.WhatsApp), f.request("second", user, verification.WhatsApp)
			f.clock.SetTime(started.Add(time.Minute))
			f.say(user, second.Code.Grouped(), "2")
			f.say(user, firstCode, "1")
			button := f.buttonOf(f.graph.all()[1])
			f.Expect(f.post(webhookOf(c.forge(button))).Code).To(Equal(http.StatusOK))
			f.Expect(f.outcomes()).To(HaveKeyWithValue(c.want, 1))
			f.expectVerified(f.state(made.Request.ID), c.want == messenger.OutcomeVerified)
			f.expectVerified(f.state(second.Request.ID), false)
		})
	}
}

// TestHook_asksOnce has a link relayed again and again: one prompt, and the user's own way stays open.
func TestHook_asksOnce(t *testing.T) {
	f, made := newStrict(t)
	other := f.failing(func(int64, string) error { return nil })
	for i := range 5 {
		f.say(user, "Parcel "+firstCode, strconv.Itoa(i))
		body := webhookOf(textOf(firstCode, object{"id": fmt.Sprintf("wamid.other-%d", i)}))
		f.Expect(f.postTo(other, body, sign(body, appSecret)).Code).To(Equal(http.StatusOK))
	}
	calls := f.sendReplies()
	f.Expect(calls).To(HaveLen(2))
	f.buttonOf(calls[0])
	f.Expect(calls[1].text()).To(Equal(textTextChanged))
	f.Expect(f.state(made.Request.ID).Contacts).To(HaveLen(1), "one write")
	f.expectVerified(f.state(made.Request.ID), false)
	f.say(user, expectedText("Ada's Books", made.Code), "own")
	f.expectVerified(f.state(made.Request.ID), true)
}

// TestHook_confirmationFails has the prompt fail, for now and for good: Meta's redelivery is what asks the user again.
func TestHook_confirmationFails(t *testing.T) {
	f, made := newStrict(t)
	body := webhookOf(textOf(firstCode, nil))
	f.graph.answers(http.StatusInternalServerError, []byte(`{}`))
	f.Expect(f.post(body).Code).To(Equal(http.StatusServiceUnavailable))
	f.graph.answers(http.StatusOK, golden(t, "answers/message"))
	f.Expect(f.post(body).Code).To(Equal(http.StatusOK))
	calls := f.graph.all()
	f.Expect(calls).To(HaveLen(2))
	f.Expect(f.buttonOf(calls[1])).To(Equal(f.buttonOf(calls[0])), "the same button, at whatever replica")
	f.Expect(f.post(webhookOf(tapOf(f.buttonOf(calls[1]), nil))).Code).To(Equal(http.StatusOK))
	f.expectVerified(f.state(made.Request.ID), true)
}

// TestHook_refusedPrompts: where Meta will never deliver a prompt, its message is done with. Else it comes again.
func TestHook_refusedPrompts(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		answer string
		want   int
	}{
		"undeliverable":              {400, `{"error":{"code":131026}}`, http.StatusOK},
		"outside of the 24 hours":    {400, `{"error":{"code":131047}}`, http.StatusOK},
		"unsupported type":           {400, `{"error":{"code":131051}}`, http.StatusOK},
		"invalid parameter":          {400, `{"error":{"code":100}}`, http.StatusOK},
		"recipient is the sender":    {400, `{"error":{"code":131021}}`, http.StatusOK},
		"not in the list of testers": {400, `{"error":{"code":131030}}`, http.StatusOK},
		"expired token":              {401, `{"error":{"code":190,"error_subcode":463}}`, http.StatusServiceUnavailable},
		"no permission":              {403, `{"error":{"code":200}}`, http.StatusServiceUnavailable},
		"account locked":             {403, `{"error":{"code":131031}}`, http.StatusServiceUnavailable},
		"account locked, oddly said": {400, `{"error":{"code":131031}}`, http.StatusServiceUnavailable},
		"unpaid":                     {400, `{"error":{"code":131042}}`, http.StatusServiceUnavailable},
		"not registered":             {400, `{"error":{"code":133010}}`, http.StatusServiceUnavailable},
		"pair rate limit":            {400, `{"error":{"code":131056}}`, http.StatusServiceUnavailable},
		"something went wrong":       {500, `{"error":{"code":131000}}`, http.StatusServiceUnavailable},
		"a proxy's page":             {400, `<html>`, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			for what, message := range map[string]object{"a contact": hidden(firstCode, hiddenUser), "a confirmation": textOf(firstCode, nil)} {
				f, made := newStrict(t)
				f.acceptContacts()
				f.graph.answers(c.status, []byte(c.answer))
				f.Expect(f.post(webhookOf(message)).Code).To(Equal(c.want), what)
				f.Expect(f.post(webhookOf(message)).Code).To(Equal(c.want), what)
				if c.want == http.StatusOK {
					f.Expect(f.outcomes()).To(HaveKeyWithValue(messenger.OutcomeNoPrompt, 1), what)
					f.Expect(f.graph.all()).To(HaveLen(1), "%s: a copy does not try again", what)
					f.Expect(f.hintOf(made.Request.ID)).To(Equal(verification.HintNoQuestion), what)
				} else {
					f.Expect(f.hintOf(made.Request.ID)).To(BeElementOf(verification.HintTextChanged, verification.HintAwaitingContact), what)
					f.Expect(f.outcomes()).To(Equal(map[messenger.Outcome]int{messenger.OutcomePromptFailed: 2}), what)
				}
			}
		})
	}
}

// TestHook_renamedProject changes displayName while a text is on its way: it stays valid, and a question bears that name.
func TestHook_renamedProject(t *testing.T) {
	f, made := newStrict(t)
	old := expectedText("Ada's Books", made.Code)
	f.change(func(s *settings.Settings) { s.DisplayName = "Bob's Books" })
	f.say(user, expectedText("Bob's Books", made.Code), "1")
	f.Expect(f.graph.all()[0].text()).To(Equal(saidConfirm), "nothing of that name was prepared for this request")
	f.expectVerified(f.state(made.Request.ID), false)
	f.say(user, old, "2")
	f.expectVerified(f.state(made.Request.ID), true)
	calls := f.sendReplies()
	f.Expect(calls[len(calls)-1].text()).To(Equal(saidVerified))
}

// TestHook_requestOfBefore has a request whose text's name was not kept: the present one counts.
func TestHook_requestOfBefore(t *testing.T) {
	f := newFixture(t)
	f.strict()
	f.change(func(s *settings.Settings) { s.DisplayName = "" })
	made := f.request("first", user, verification.WhatsApp)
	f.change(func(s *settings.Settings) { s.DisplayName = "Ada's Books" })
	f.clock.SetTime(started.Add(time.Minute))
	f.say(user, expectedText("Ada's Books", made.Code), "1")
	f.expectVerified(f.state(made.Request.ID), true)
}

// TestHook_confirmationAcrossRotation has the app secret replaced between the prompt and the tap.
func TestHook_confirmationAcrossRotation(t *testing.T) {
	const next = "d4e5f6canarynew"
	f, made := newStrict(t)
	f.say(user, firstCode, "1")
	button := f.buttonOf(f.graph.all()[0])
	f.settings.WhatsApp.AppSecret = rotated(t, appSecret, next)
	body := webhookOf(tapOf(button, nil))
	f.Expect(f.postTo(f.hook, body, sign(body, next)).Code).To(Equal(http.StatusOK))
	f.expectVerified(f.state(made.Request.ID), true)
}

// TestHook_rotationBeforeThePrompt has the app secret replaced after a prompt failed, before Meta delivers the message again.
func TestHook_rotationBeforeThePrompt(t *testing.T) {
	const next = "d4e5f6canarynew"
	f, made := newStrict(t)
	body := webhookOf(textOf(firstCode, nil))
	f.graph.answers(http.StatusInternalServerError, []byte(`{}`))
	f.Expect(f.post(body).Code).To(Equal(http.StatusServiceUnavailable))
	f.graph.answers(http.StatusOK, golden(t, "answers/message"))
	f.settings.WhatsApp.AppSecret = rotated(t, appSecret, next)
	f.Expect(f.postTo(f.hook, body, sign(body, next)).Code).To(Equal(http.StatusOK))
	calls := f.graph.all()
	f.Expect(calls).To(HaveLen(2), "asked again")
	tap := webhookOf(tapOf(f.buttonOf(calls[1]), nil))
	f.Expect(f.postTo(f.hook, tap, sign(tap, next)).Code).To(Equal(http.StatusOK))
	f.expectVerified(f.state(made.Request.ID), true)
}

// TestHook_tapRefused tells the user how to go on, once for each button, and other senders as well.
func TestHook_tapRefused(t *testing.T) {
	f, _ := newStrict(t)
	f.say(user, firstCode, "1")
	button := f.buttonOf(f.graph.all()[0])
	for range 3 {
		f.Expect(f.post(webhookOf(tapOf(button+"0", nil))).Code).To(Equal(http.StatusOK))
	}
	f.Expect(f.post(webhookOf(tapOf(button, object{"from": "16505550000"}))).Code).To(Equal(http.StatusOK))
	f.Expect(f.outcomes()).To(HaveKeyWithValue(messenger.OutcomeTapRefused, 4))
	calls := f.sendReplies()
	f.Expect(calls).To(HaveLen(3))
	f.Expect(calls[1].text()).To(Equal(textTapRefused))
	f.Expect(calls[2].text()).To(Equal(textTapRefused))
}

// TestHook_contactToAnOlderPrompt has a contact that was shared before the code was sent.
func TestHook_contactToAnOlderPrompt(t *testing.T) {
	f := newFixture(t)
	f.acceptContacts()
	made := f.request("first", user, verification.WhatsApp)
	f.clock.SetTime(started.Add(90 * time.Second))
	f.Expect(f.post(webhookOf(hidden(firstCode, hiddenUser))).Code).To(Equal(http.StatusOK))
	f.clock.SetTime(started.Add(3 * time.Minute))
	f.Expect(f.post(webhookOf(contactOf(nil, nil))).Code).To(Equal(http.StatusOK)) // dated 30 s before it was asked for
	f.Expect(f.state(made.Request.ID).Phase).To(Equal(verification.Pending))
	f.Expect(f.graph.all()).To(HaveLen(2), "asked again, by name")
	f.Expect(f.graph.all()[1].text()).To(Equal(saidShareContact))
}
