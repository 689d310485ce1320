package whatsapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/texts"
	"github.com/phoneproof/phoneproof/internal/verification"
)

func forwardedOf(text string, more object) object {
	m := textOf(text, object{"context": object{"forwarded": true}})
	maps.Copy(m, more)
	return m
}

// addReplica returns the hook of another replica over the same store.
func (f *fixture) addReplica() *Hook {
	return f.failing(func(int64, string) error { return nil })
}

// takeReplies returns the texts that a hook sends after the calls so far.
func (f *fixture) takeReplies(hook *Hook) []string {
	f.t.Helper()
	before := len(f.graph.all())
	ctx, cancel := context.WithCancel(f.t.Context())
	cancel()
	f.Expect(hook.Start(ctx)).To(Succeed())
	var all []string
	for _, c := range f.graph.all()[before:] {
		all = append(all, c.text())
	}
	return all
}

func (f *fixture) hintOf(id string) verification.HintKind {
	f.t.Helper()
	r := f.state(id)
	return r.HintAt(f.clock.Now())
}

// TestRefused_texts: the prepared text, in a message that never counts, is answered by one reply of all replicas.
func TestRefused_texts(t *testing.T) {
	edited := func(kind string, content object) object {
		return messageOf("edit", object{"original_message_id": "wamid.0", "message": object{"type": kind, kind: content}}, nil)
	}
	prepared := expectedText("Ada's Books", verification.NewCodeSpace(project).CodeFor([32]byte{}, "first"))
	caption := object{"caption": prepared, "id": "2754859441498128"}
	for name, m := range map[string]object{
		"edited":                    edited("text", object{"body": prepared}),
		"an edited caption":         edited("image", caption),
		"forwarded":                 forwardedOf(prepared, nil),
		"frequently forwarded":      textOf(prepared, object{"context": object{"frequently_forwarded": true}}),
		"below a picture":           messageOf("image", caption, nil),
		"below a video":             messageOf("video", caption, nil),
		"below a file":              messageOf("document", caption, nil),
		"below a forwarded picture": messageOf("image", caption, object{"context": object{"forwarded": true}}),
	} {
		t.Run(name, func(t *testing.T) {
			f, made := newStrict(t)
			other := f.addReplica()
			body := webhookOf(m)
			for range 2 {
				f.Expect(f.postTo(other, body, sign(body, appSecret)).Code).To(Equal(http.StatusOK))
				f.Expect(f.post(body).Code).To(Equal(http.StatusOK))
			}
			f.Expect(f.hintOf(made.Request.ID)).To(Equal(verification.HintTextRefused))
			f.Expect(f.takeReplies(f.hook)).To(BeEmpty())
			f.Expect(f.takeReplies(other)).To(Equal([]string{saidTextRefused}))

			f.say(user, prepared, "1")
			f.Expect(f.post(body).Code).To(Equal(http.StatusOK))
			f.expectVerified(f.state(made.Request.ID), true)
			f.Expect(f.takeReplies(f.hook)).To(Equal([]string{saidVerified}))
		})
	}
}

// TestRefused_textsOfOthers are those that leave another hint, or none. The reply depends on what its sender set alone, so it says nothing
// about the request.
func TestRefused_textsOfOthers(t *testing.T) {
	unknown := verification.NewCodeSpace(project).CodeFor([32]byte{}, "second").Grouped()
	hide := object{"from": nil, "from_user_id": hiddenUser}
	for name, c := range map[string]struct {
		m       object
		setting settings.HiddenNumbers
		want    verification.HintKind
		reply   string
	}{
		"from another number":              {forwardedOf(firstCode, object{"from": "16505550000"}), settings.HiddenRefused, verification.HintOtherNumber, saidTextRefused},
		"from a hidden number":             {forwardedOf(firstCode, hide), settings.HiddenRefused, verification.HintNumberHidden, fillName(english.NumberHidden)},
		"from one that may be shared":      {forwardedOf(firstCode, hide), settings.HiddenShared, verification.HintTextRefused, saidTextRefused},
		"from one that may be echoed":      {forwardedOf(firstCode, hide), settings.HiddenEcho, verification.HintTextRefused, saidTextRefused},
		"a code that is unknown":           {forwardedOf(unknown, nil), settings.HiddenRefused, "", ""},
		"no code":                          {forwardedOf("Is this still available?", nil), settings.HiddenRefused, "", ""},
		"in a group":                       {forwardedOf(firstCode, object{"group_id": "1"}), settings.HiddenRefused, "", ""},
		"of the business itself":           {forwardedOf(firstCode, object{"from": businessNumber}), settings.HiddenRefused, "", ""},
		"without a time":                   {forwardedOf(firstCode, object{"timestamp": ""}), settings.HiddenRefused, "", ""},
		"from before the request":          {forwardedOf(firstCode, object{"timestamp": strconv.FormatInt(started.Add(-time.Hour).Unix(), 10)}), settings.HiddenRefused, "", ""},
		"an edit of an edit":               {messageOf("edit", object{"message": object{"type": "edit", "edit": object{"message": textOf(firstCode, nil)}}}, nil), settings.HiddenRefused, "", ""},
		"an edit that is none":             {messageOf("edit", "x", nil), settings.HiddenRefused, "", ""},
		"a caption that is none":           {messageOf("image", object{"caption": 7}, nil), settings.HiddenRefused, "", ""},
		"the code in the name of the file": {messageOf("document", object{"filename": firstCode}, nil), settings.HiddenRefused, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f, made := newStrict(t)
			f.change(func(s *settings.Settings) { s.WhatsApp.HiddenNumbers = c.setting })
			for range 2 {
				f.Expect(f.post(webhookOf(c.m)).Code).To(Equal(http.StatusOK))
			}
			f.Expect(f.hintOf(made.Request.ID)).To(Equal(c.want))
			f.Expect(strings.Join(f.takeReplies(f.hook), "\n")).To(Equal(c.reply))
		})
	}
}

// TestRefused_afterTheQuestionToAnother: a hidden sender was asked for the contact, which helps no other one.
func TestRefused_afterTheQuestionToAnother(t *testing.T) {
	for _, setting := range []settings.HiddenNumbers{settings.HiddenShared, settings.HiddenEcho} {
		f, made := newStrict(t)
		f.change(func(s *settings.Settings) { s.WhatsApp.HiddenNumbers = setting })
		f.sendHidden(firstCode, hiddenUser)
		asked := f.hintOf(made.Request.ID)
		forward := func(userID string) {
			f.Expect(f.post(webhookOf(forwardedOf(firstCode, object{"from": nil, "from_user_id": userID}))).Code).To(Equal(http.StatusOK))
		}
		forward(hiddenUser)
		f.Expect(f.hintOf(made.Request.ID)).To(Equal(asked), "%s", setting)
		forward(otherHidden)
		f.Expect(f.hintOf(made.Request.ID)).To(Equal(verification.HintTextRefused), "%s", setting)
	}
}

// TestRefused_afterTheQuestion: what its sender is asked leads on, and no edit replaces it.
func TestRefused_afterTheQuestion(t *testing.T) {
	f, made := newStrict(t)
	f.say(user, firstCode, "1")
	f.Expect(f.post(webhookOf(forwardedOf(firstCode, nil))).Code).To(Equal(http.StatusOK))
	f.Expect(f.hintOf(made.Request.ID)).To(Equal(verification.HintTextChanged))
	f.Expect(f.takeReplies(f.hook)).To(BeEmpty())
	f.Expect(f.post(webhookOf(tapOf(f.buttonOf(f.graph.all()[0]), nil))).Code).To(Equal(http.StatusOK))
	f.expectVerified(f.state(made.Request.ID), true)
}

func TestRefused_withoutReplies(t *testing.T) {
	f, made := newStrict(t)
	f.change(func(s *settings.Settings) { s.Replies.Send = settings.SendNever })
	f.Expect(f.post(webhookOf(forwardedOf(firstCode, nil))).Code).To(Equal(http.StatusOK))
	f.Expect(f.hintOf(made.Request.ID)).To(Equal(verification.HintTextRefused))
	f.Expect(f.takeReplies(f.hook)).To(BeEmpty())
}

// TestRefused_junk: a sender has so many codes looked up as with messages that may count, and no reply.
func TestRefused_junk(t *testing.T) {
	f, _ := newStrict(t)
	lookups := 0
	hook := f.failing(func(int64, string) error { lookups++; return nil })
	codes := verification.NewCodeSpace(project)
	for i := range 3 * messenger.MaxPerSender {
		body := webhookOf(forwardedOf(codes.CodeFor([32]byte{}, "guess "+strconv.Itoa(i)).Grouped(), nil))
		f.Expect(f.postTo(hook, body, sign(body, appSecret)).Code).To(Equal(http.StatusOK))
	}
	f.Expect(lookups).To(Equal(messenger.MaxPerSender))
	body := webhookOf(forwardedOf("Is this still available?", object{"from": "16505550000"}))
	f.Expect(f.postTo(hook, body, sign(body, appSecret)).Code).To(Equal(http.StatusOK))
	f.Expect(lookups).To(Equal(messenger.MaxPerSender))
	f.Expect(f.takeReplies(hook)).To(BeEmpty())
}

// TestRefused_whileTheStoreIsDown: the message comes again, and is answered then.
func TestRefused_whileTheStoreIsDown(t *testing.T) {
	f, made := newStrict(t)
	hook := f.failing(func(n int64, _ string) error {
		if n == 1 {
			return errors.New("down")
		}
		return nil
	})
	body := webhookOf(forwardedOf(firstCode, nil))
	f.Expect(f.postTo(hook, body, sign(body, appSecret)).Code).To(Equal(http.StatusServiceUnavailable))
	f.Expect(f.postTo(hook, body, sign(body, appSecret)).Code).To(Equal(http.StatusOK))
	f.Expect(f.hintOf(made.Request.ID)).To(Equal(verification.HintTextRefused))
	f.Expect(f.takeReplies(hook)).To(Equal([]string{saidTextRefused}))
}

// TestRefused_contacts: a user who hides the number, and was asked to share it, attaches a card.
func TestRefused_contacts(t *testing.T) {
	for name, m := range map[string]object{
		"a card":                      contactOf(object{"origin": "other"}, nil),
		"a card of no origin":         contactOf(object{"origin": nil}, nil),
		"two numbers":                 contactOf(object{"phones": []any{object{"wa_id": user}, object{"wa_id": "16505550000"}}}, nil),
		"a number without an account": contactOf(object{"phones": []any{object{"phone": "+" + user}}}, nil),
		"another number than shown":   contactOf(nil, object{"from": "16505550000"}),
		"forwarded":                   contactOf(nil, object{"context": object{"forwarded": true}}),
	} {
		t.Run(name, func(t *testing.T) {
			f, made := newStrict(t)
			f.acceptContacts()
			f.sendHidden(firstCode, hiddenUser)
			other, body := f.addReplica(), webhookOf(m)
			for range 2 {
				f.Expect(f.postTo(other, body, sign(body, appSecret)).Code).To(Equal(http.StatusOK))
				f.Expect(f.post(body).Code).To(Equal(http.StatusOK))
			}
			f.Expect(f.hintOf(made.Request.ID)).To(Equal(verification.HintContactRefused))
			f.Expect(f.takeReplies(f.hook)).To(BeEmpty())
			f.Expect(f.takeReplies(other)).To(Equal([]string{texts.Fill(english.ContactRefused, "Ada's Books")}))
			f.Expect(f.post(webhookOf(contactOf(nil, nil))).Code).To(Equal(http.StatusOK))
			f.expectVerified(f.state(made.Request.ID), true)
		})
	}
}

// TestRefused_contactsOfOthers were asked for nothing, or not for a contact.
func TestRefused_contactsOfOthers(t *testing.T) {
	card := webhookOf(contactOf(object{"origin": "other"}, nil))
	for name, c := range map[string]struct {
		setting settings.HiddenNumbers
		sender  string
		want    verification.HintKind
	}{
		"another user was asked":      {settings.HiddenShared, otherHidden, verification.HintAwaitingContact},
		"the claimed number was":      {settings.HiddenEcho, hiddenUser, verification.HintAwaitingConfirmation},
		"none, and the user knows it": {settings.HiddenRefused, hiddenUser, verification.HintNumberHidden},
	} {
		t.Run(name, func(t *testing.T) {
			f, made := newStrict(t)
			f.change(func(s *settings.Settings) { s.WhatsApp.HiddenNumbers = c.setting })
			f.sendHidden(firstCode, c.sender)
			f.takeReplies(f.hook)
			f.Expect(f.post(card).Code).To(Equal(http.StatusOK))
			f.Expect(f.hintOf(made.Request.ID)).To(Equal(c.want))
			f.Expect(f.takeReplies(f.hook)).To(BeEmpty())
		})
	}
}

// referenceOf returns what the statuses of a message carry.
func (f *fixture) referenceOf(c seenCall) object {
	f.t.Helper()
	var m outgoing
	f.Expect(json.Unmarshal([]byte(c.Body), &m)).To(Succeed())
	return object{"biz_opaque_callback_data": m.Reference}
}

// TestQuestion_notDelivered by a status: the user learns that no button will come. The prepared text goes on to count if it
// comes with a number, the answer of a hidden sender once the question is asked anew.
func TestQuestion_notDelivered(t *testing.T) {
	for _, code := range []int{131030, 131026, 131047, 131042} { // the last one is of the account, and no question comes either
		for what, message := range map[string]object{"a contact": hidden(firstCode, hiddenUser), "a confirmation": textOf(firstCode, nil)} {
			f, made := newStrict(t)
			f.acceptContacts()
			f.Expect(f.post(webhookOf(message)).Code).To(Equal(http.StatusOK))
			reference, before := f.referenceOf(f.graph.all()[0]), f.hintOf(made.Request.ID)
			for _, other := range []object{
				statusOf("wamid.1", "delivered", reference), statusOf("wamid.2", "failed", failedWith(code)),
				statusOf("wamid.3", "failed", object{"biz_opaque_callback_data": "question:" + made.Request.ID + ":another:1"}),
				statusOf("wamid.4", "failed", object{"biz_opaque_callback_data": "question:none"}),
			} {
				f.Expect(f.post(statusesOf(other)).Code).To(Equal(http.StatusOK))
				f.Expect(f.hintOf(made.Request.ID)).To(Equal(before), what)
			}
			failed := statusOf("wamid.5", "failed", failedWith(code))
			maps.Copy(failed, reference)
			f.Expect(f.post(statusesOf(failed)).Code).To(Equal(http.StatusOK))
			f.Expect(f.hintOf(made.Request.ID)).To(Equal(verification.HintNoQuestion), "%s %d", what, code)
			f.Expect(f.takeReplies(f.hook)).To(BeEmpty(), "Meta would refuse it, too")
			if what == "a confirmation" {
				f.say(user, expectedText("Ada's Books", made.Code), "2")
			} else {
				prepared := hidden(expectedText("Ada's Books", made.Code), hiddenUser)
				prepared["timestamp"] = unixSeconds(f.clock.Now().Add(time.Second))
				f.clock.SetTime(f.clock.Now().Add(2 * time.Second))
				f.Expect(f.post(webhookOf(prepared)).Code).To(Equal(http.StatusOK))
				f.Expect(f.graph.all()).To(HaveLen(2), "asked anew, however soon")
				failed["id"] = "wamid.6"
				f.Expect(f.post(statusesOf(failed)).Code).To(Equal(http.StatusOK))
				f.Expect(f.hintOf(made.Request.ID)).To(Equal(verification.HintAwaitingContact), "the first question, reported late")
				second := statusOf("wamid.7", "failed", failedWith(code))
				maps.Copy(second, f.referenceOf(f.graph.all()[1]))
				f.Expect(f.post(statusesOf(second)).Code).To(Equal(http.StatusOK))
				f.Expect(f.hintOf(made.Request.ID)).To(Equal(verification.HintNoQuestion), "lost, too")
				f.Expect(f.post(webhookOf(contactOf(nil, object{"timestamp": unixSeconds(f.clock.Now())}))).Code).To(Equal(http.StatusOK))
			}
			f.expectVerified(f.state(made.Request.ID), true)
		}
	}
}

// TestQuestion_lostWhileTheStoreFails: the message or the status comes again, so that the hint is not lost. What the store refuses to keep
// does not come again.
func TestQuestion_lostWhileTheStoreFails(t *testing.T) {
	down, refused := errors.New("down"), fmt.Errorf("write: %w", verification.ErrContent)
	for name, c := range map[string]struct {
		byStatus bool
		err      error
		code     int
		want     verification.HintKind
		outcome  messenger.Outcome
	}{
		"answered":                     {false, down, http.StatusServiceUnavailable, verification.HintNoQuestion, messenger.OutcomeFailed},
		"answered, content refused":    {false, refused, http.StatusOK, verification.HintTextChanged, messenger.OutcomeContentRefused},
		"by a status":                  {true, down, http.StatusServiceUnavailable, verification.HintNoQuestion, messenger.OutcomeFailed},
		"by a status, content refused": {true, refused, http.StatusOK, verification.HintTextChanged, messenger.OutcomeContentRefused},
	} {
		t.Run(name, func(t *testing.T) {
			f, made := newStrict(t)
			f.hook = f.failing(func(n int64, _ string) error {
				if n == 1 || n > 2 && c.code != http.StatusOK {
					return nil
				}
				return c.err
			})
			body := webhookOf(textOf(firstCode, nil))
			if c.byStatus {
				f.Expect(f.post(body).Code).To(Equal(http.StatusOK))
				status := statusOf("wamid.1", "failed", failedWith(131030))
				maps.Copy(status, f.referenceOf(f.graph.all()[0]))
				body = statusesOf(status)
			} else {
				f.graph.answers(http.StatusBadRequest, []byte(`{"error":{"code":131030}}`))
			}
			f.Expect(f.post(body).Code).To(Equal(c.code))
			f.Expect(f.hintOf(made.Request.ID)).To(Equal(verification.HintTextChanged))
			f.Expect(f.outcomes()).To(HaveKeyWithValue(c.outcome, 1))
			f.Expect(string(f.logs.Contents())).To(ContainSubstring(c.err.Error()))
			f.Expect(f.post(body).Code).To(Equal(http.StatusOK))
			f.Expect(f.hintOf(made.Request.ID)).To(Equal(c.want))
			if c.byStatus {
				f.Expect(f.notDelivered()).To(Equal(map[string]int{failedOther: 1}), "a copy counts no second time")
			}
		})
	}
}

// TestQuestion_refusedLate has Meta's answer come when the time of the message is over.
func TestQuestion_refusedLate(t *testing.T) {
	f, made := newStrict(t)
	ctx, cancel := context.WithCancel(t.Context())
	f.graph.answers(http.StatusBadRequest, nil)
	f.graph.with = func(url.Values) string {
		cancel()
		return `{"error":{"code":131030}}`
	}
	d := &delivery{hook: f.hook, settings: f.settings, account: f.settings.WhatsApp, now: f.clock.Now()}
	in := decodeWebhook(webhookOf(textOf(firstCode, nil)), numberID, counts{}.count)
	f.Expect(d.receiveMessage(ctx, &in.messages[0])).To(Equal(messenger.OutcomeNoPrompt))
	f.Expect(f.hintOf(made.Request.ID)).To(Equal(verification.HintNoQuestion))
}
