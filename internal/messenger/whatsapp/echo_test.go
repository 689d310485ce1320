package whatsapp

import (
	"encoding/json"
	"errors"
	"maps"
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

// otherHidden is another user whose number is hidden.
const otherHidden = "US.99999999999999999999"

// useEcho has the project ask claimed numbers.
func (f *fixture) useEcho() {
	f.change(func(s *settings.Settings) { s.WhatsApp.HiddenNumbers = settings.HiddenEcho })
}

// newEcho returns a project that asks claimed numbers, with a request for one, a minute after it was made.
func newEcho(t testing.TB) (*fixture, verification.Initiated) {
	t.Helper()
	f := newFixture(t)
	f.useEcho()
	made := f.request("first", user, verification.WhatsApp)
	f.clock.SetTime(started.Add(time.Minute))
	return f, made
}

// sendHidden sends the code from a hidden number.
func (f *fixture) sendHidden(code, userID string) {
	f.t.Helper()
	f.Expect(f.post(webhookOf(hidden(code, userID))).Code).To(Equal(http.StatusOK))
}

// echoButtons returns the ids of the two buttons of a question to the claimed number.
func (f *fixture) echoButtons(c seenCall) (confirm, decline string) {
	f.t.Helper()
	var m outgoing
	f.Expect(json.Unmarshal([]byte(c.Body), &m)).To(Succeed())
	f.Expect(m.To).To(Equal(user), "to the claimed number")
	f.Expect(m.Recipient).To(BeEmpty(), "never to the sender of the code")
	f.Expect(m.Interactive.Action.Buttons).To(HaveLen(2))
	return m.Interactive.Action.Buttons[0].Reply.ID, m.Interactive.Action.Buttons[1].Reply.ID
}

// echoTapOf returns a tap of the user who sent the code, with the number hidden.
func echoTapOf(id string, more object) object {
	changes := object{"from": nil, "from_user_id": hiddenUser, "timestamp": "1795168890"}
	maps.Copy(changes, more)
	return tapOf(id, changes)
}

func TestEcho_verifiesTheClaimedNumber(t *testing.T) {
	f, made := newEcho(t)
	f.sendHidden(firstCode, hiddenUser)
	calls := f.graph.all()
	f.Expect(calls).To(HaveLen(1))
	f.Expect(calls[0].text()).To(ContainSubstring("Ada's Books asks to confirm that this phone number is yours"))
	f.Expect(calls[0].Body).To(ContainSubstring(`"biz_opaque_callback_data":"` + made.Request.ID + `"`))
	confirm, decline := f.echoButtons(calls[0])
	f.Expect(len(confirm)).To(BeNumerically("<=", 256))
	f.Expect(confirm + decline).NotTo(ContainSubstring(user))
	state := f.state(made.Request.ID)
	f.Expect(state.HintAt(f.clock.Now())).To(Equal(verification.HintAwaitingConfirmation))
	f.Expect(state.Contacts[0].Nonce).To(HaveLen(32))
	f.Expect(confirm).NotTo(ContainSubstring(state.Contacts[0].Nonce), "who reads the store cannot make the button")
	echo := state.Contacts[0]
	tokenBy := func(nonce string) string {
		echo.Nonce = nonce
		return echoToken([]byte(appSecret), made.Request.ID, made.Request.Phone, echo)
	}
	f.Expect(confirm).To(HaveSuffix(tokenBy(state.Contacts[0].Nonce)))
	f.Expect(confirm).NotTo(HaveSuffix(tokenBy(newNonce())), "no other question has its button")

	f.clock.SetTime(started.Add(2 * time.Minute))
	f.Expect(f.post(webhookOf(echoTapOf(confirm, nil))).Code).To(Equal(http.StatusOK))
	state = f.state(made.Request.ID)
	f.expectVerified(state, true)
	f.Expect(state.Assurance).To(Equal(verification.AssuranceEcho))
	f.Expect(state.Actual).To(Equal(made.Request.Phone))
	f.Expect(f.outcomes()).To(Equal(map[messenger.Outcome]int{messenger.OutcomeNeedEcho: 1, messenger.OutcomeVerified: 1}))
	replies := f.sendReplies()
	f.Expect(replies).To(HaveLen(2))
	f.Expect(replies[1].text()).To(Equal(saidVerified))
}

// TestEcho_clocksApart has Meta's clock behind that of the store: the answer bears an earlier time than the question.
func TestEcho_clocksApart(t *testing.T) {
	f, made := newEcho(t)
	f.sendHidden(firstCode, hiddenUser)
	confirm, _ := f.echoButtons(f.graph.all()[0])
	tap := echoTapOf(confirm, object{"timestamp": unixSeconds(f.clock.Now().Add(-5 * time.Second))})
	f.Expect(f.post(webhookOf(tap)).Code).To(Equal(http.StatusOK))
	f.expectVerified(f.state(made.Request.ID), true)
}

// TestEcho_numberShown has Meta show the number since it was asked, as it does for 30 days.
func TestEcho_numberShown(t *testing.T) {
	f, made := newEcho(t)
	f.sendHidden(firstCode, hiddenUser)
	confirm, _ := f.echoButtons(f.graph.all()[0])
	f.Expect(f.post(webhookOf(echoTapOf(confirm, object{"from": user}))).Code).To(Equal(http.StatusOK))
	f.expectVerified(f.state(made.Request.ID), true)
}

// TestEcho_refusesTaps tries answers that must not verify; the attacks on the echo.
func TestEcho_refusesTaps(t *testing.T) {
	raw := func(kind string, content object) func(string) object {
		return func(string) object { return messageOf(kind, content, object{"from": nil, "from_user_id": hiddenUser}) }
	}
	for name, c := range map[string]struct {
		tap  func(confirm string) object
		want messenger.Outcome
	}{
		"by another user":                 {func(b string) object { return echoTapOf(b, object{"from_user_id": otherHidden}) }, messenger.OutcomeTapRefused},
		"by another user with the number": {func(b string) object { return echoTapOf(b, object{"from": user, "from_user_id": otherHidden}) }, messenger.OutcomeTapRefused},
		"by the number without a user id": {func(b string) object { return echoTapOf(b, object{"from": user, "from_user_id": nil}) }, messenger.OutcomeTapRefused},
		"by the user with another number": {func(b string) object { return echoTapOf(b, object{"from": "16505550000"}) }, messenger.OutcomeTapRefused},
		"without any sender":              {func(b string) object { return echoTapOf(b, object{"from_user_id": nil}) }, messenger.OutcomeNoSender},
		"by the user in another form":     {func(b string) object { return echoTapOf(b, object{"from_user_id": strings.ToLower(hiddenUser)}) }, messenger.OutcomeNoSender},
		"with a changed token":            {func(b string) object { return echoTapOf(b[:len(b)-1]+"g", nil) }, messenger.OutcomeTapRefused},
		"with half a token":               {func(b string) object { return echoTapOf(b[:len(b)-8], nil) }, messenger.OutcomeTapRefused},
		"without a token":                 {func(b string) object { return echoTapOf(b[:strings.LastIndexByte(b, ':')+1], nil) }, messenger.OutcomeTapRefused},
		"without anything":                {func(string) object { return echoTapOf(echoConfirmPrefix, nil) }, messenger.OutcomeTapRefused},
		"of another request": {func(b string) object {
			return echoTapOf(echoConfirmPrefix+secondID()+b[strings.LastIndexByte(b, ':'):], nil)
		}, messenger.OutcomeTapRefused},
		"as the confirmation of a text": {func(b string) object {
			return echoTapOf(confirmationPrefix+strings.TrimPrefix(b, echoConfirmPrefix), nil)
		}, messenger.OutcomeTapRefused},
		"typed":                     {func(b string) object { return textOf(b, object{"from": nil, "from_user_id": hiddenUser}) }, messenger.OutcomeNoCode},
		"as a list":                 {listTapOf, messenger.OutcomeNoCode},
		"as a button of a template": {func(b string) object { return raw("button", object{"payload": b, "text": "Confirm"})(b) }, messenger.OutcomeNoCode},
		"forwarded":                 {func(b string) object { return echoTapOf(b, object{"context": object{"forwarded": true}}) }, messenger.OutcomeForwarded},
		"in a group":                {func(b string) object { return echoTapOf(b, object{"group_id": "1"}) }, messenger.OutcomeNotPrivate},
		"from before the request":   {func(b string) object { return echoTapOf(b, object{"timestamp": unixSeconds(started.Add(-time.Hour))}) }, messenger.OutcomeTooLate},
		"from after the request's time": {func(b string) object {
			return echoTapOf(b, object{"timestamp": unixSeconds(started.Add(11 * time.Minute))})
		}, messenger.OutcomeTooLate},
		"without a time":         {func(b string) object { return echoTapOf(b, object{"timestamp": nil}) }, messenger.OutcomeNoTime},
		"of the business itself": {func(b string) object { return echoTapOf(b, object{"from": businessNumber}) }, messenger.OutcomeEcho},
	} {
		t.Run(name, func(t *testing.T) {
			f, made := newEcho(t)
			f.sendHidden(firstCode, hiddenUser)
			confirm, _ := f.echoButtons(f.graph.all()[0])
			f.Expect(f.post(webhookOf(c.tap(confirm))).Code).To(Equal(http.StatusOK))
			f.Expect(f.outcomes()).To(Equal(map[messenger.Outcome]int{messenger.OutcomeNeedEcho: 1, c.want: 1}))
			f.expectVerified(f.state(made.Request.ID), false)
		})
	}
}

func unixSeconds(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }

func secondID() string {
	codes := verification.NewCodeSpace(project)
	return codes.RequestID(codes.CodeFor([32]byte{}, "second"))
}

func listTapOf(id string) object {
	return messageOf("interactive", object{"type": "list_reply", "list_reply": object{"id": id, "title": "Confirm"}},
		object{"from": nil, "from_user_id": hiddenUser})
}

// TestEcho_statusIsNoAnswer has the button's id come back in a status, as the reference of the message does.
func TestEcho_statusIsNoAnswer(t *testing.T) {
	f, made := newEcho(t)
	f.sendHidden(firstCode, hiddenUser)
	confirm, _ := f.echoButtons(f.graph.all()[0])
	body := encode(envelopeOf(changeOf(object{
		"messaging_product": "whatsapp", "metadata": object{"display_phone_number": businessNumber, "phone_number_id": numberID},
		"statuses": []any{object{
			"id": "wamid.X", "status": "read", "timestamp": "1795168890", "recipient_user_id": hiddenUser, "biz_opaque_callback_data": confirm,
		}},
	})))
	f.Expect(f.post(body).Code).To(Equal(http.StatusOK))
	f.expectVerified(f.state(made.Request.ID), false)
}

// TestEcho_otherSender has two users claim the same request. Each one's question would be their own, and the number is asked once.
func TestEcho_otherSender(t *testing.T) {
	f, made := newEcho(t)
	f.sendHidden(firstCode, otherHidden)
	confirm, _ := f.echoButtons(f.graph.all()[0])
	f.sendHidden(firstCode, hiddenUser)
	f.Expect(f.graph.all()).To(HaveLen(1), "one echo per number and day")
	f.Expect(f.post(webhookOf(echoTapOf(confirm, nil))).Code).To(Equal(http.StatusOK))
	f.expectVerified(f.state(made.Request.ID), false)
	f.Expect(f.outcomes()).To(Equal(map[messenger.Outcome]int{
		messenger.OutcomeNeedEcho: 1, messenger.OutcomeEchoLimited: 1, messenger.OutcomeTapRefused: 1,
	}))
}

// TestEcho_oncePerDay asks a number again the next day only, whichever request it is about.
func TestEcho_oncePerDay(t *testing.T) {
	f, _ := newEcho(t)
	f.sendHidden(firstCode, hiddenUser)
	second := f.request("second", user, verification.WhatsApp)
	m := hidden(second.Code.Grouped(), hiddenUser)
	m["timestamp"] = unixSeconds(f.clock.Now())
	f.Expect(f.post(webhookOf(m)).Code).To(Equal(http.StatusOK))
	f.Expect(f.graph.all()).To(HaveLen(1))
	state := f.state(second.Request.ID)
	f.Expect(state.HintAt(f.clock.Now())).To(Equal(verification.HintAwaitingConfirmation), "the same hint as with a question")

	f.clock.SetTime(started.Add(24*time.Hour + time.Minute))
	third := f.request("third", user, verification.WhatsApp)
	m = hidden(third.Code.Grouped(), hiddenUser)
	m["timestamp"] = unixSeconds(f.clock.Now())
	f.Expect(f.post(webhookOf(m)).Code).To(Equal(http.StatusOK))
	f.Expect(f.graph.all()).To(HaveLen(2))
}

// TestEcho_crashes has the process end between the nonce, the question and the tap: what is stored is all that is needed.
func TestEcho_crashes(t *testing.T) {
	f, made := newEcho(t)
	f.graph.answers(http.StatusServiceUnavailable, nil)
	f.Expect(f.post(webhookOf(hidden(firstCode, hiddenUser))).Code).To(Equal(http.StatusServiceUnavailable), "the question was not sent")
	nonce := f.state(made.Request.ID).Contacts[0].Nonce
	before, _ := f.echoButtons(f.graph.all()[0])

	f.restartHook()
	f.graph.answers(http.StatusOK, []byte("{}"))
	f.sendHidden(firstCode, hiddenUser)
	f.Expect(f.state(made.Request.ID).Contacts).To(HaveLen(1))
	f.Expect(f.state(made.Request.ID).Contacts[0].Nonce).To(Equal(nonce))
	again, _ := f.echoButtons(f.graph.all()[1])
	f.Expect(again).To(Equal(before), "the same question")

	f.restartHook()
	f.Expect(f.post(webhookOf(echoTapOf(before, nil))).Code).To(Equal(http.StatusOK))
	f.expectVerified(f.state(made.Request.ID), true)
}

// restartHook replaces the process: its memory is gone.
func (f *fixture) restartHook() {
	f.t.Helper()
	f.registry.Unregister(f.hook.metrics.Messages)
	f.hook = f.failing(func(int64, string) error { return nil })
}

func TestEcho_storeDown(t *testing.T) {
	f, made := newEcho(t)
	hook := f.failing(func(int64, string) error { return verification.Unavailable(errors.New("down")) })
	body := webhookOf(hidden(firstCode, hiddenUser))
	f.Expect(f.postTo(hook, body, sign(body, appSecret)).Code).To(Equal(http.StatusServiceUnavailable))
	f.Expect(f.graph.all()).To(BeEmpty(), "nothing is sent before the nonce is stored")
	f.Expect(f.state(made.Request.ID).Contacts).To(BeEmpty())
}

// TestEcho_undeliverable gets the answers that Meta gives for a number whose user did not write. It does not show which it was.
func TestEcho_undeliverable(t *testing.T) {
	for _, code := range []string{"131047", "131026", "131030"} {
		f, made := newEcho(t)
		f.graph.answers(http.StatusBadRequest, []byte(`{"error":{"message":"x","code":`+code+`}}`))
		f.sendHidden(firstCode, hiddenUser)
		state := f.state(made.Request.ID)
		f.Expect(state.HintAt(f.clock.Now())).To(Equal(verification.HintAwaitingConfirmation))
		f.Expect(f.sendReplies()).To(HaveLen(1), "no reply to the sender")
		f.Expect(f.outcomes()).To(Equal(map[messenger.Outcome]int{messenger.OutcomeNoPrompt: 1}))
	}
}

// TestEcho_notDelivered has a question that never reached the number: another one may be sent on the same day.
func TestEcho_notDelivered(t *testing.T) {
	refuse := func(f *fixture, _ string) {
		f.graph.answers(http.StatusBadRequest, []byte(`{"error":{"message":"x","code":131047}}`))
		f.sendHidden(firstCode, hiddenUser)
		f.sendHidden(firstCode, hiddenUser) // a copy, which asks nothing
		f.graph.answers(http.StatusOK, []byte("{}"))
	}
	report := func(change object) func(f *fixture, id string) {
		return func(f *fixture, id string) {
			f.sendHidden(firstCode, hiddenUser)
			status := statusOf("wamid.1", "failed", failedWith(131026))
			status["biz_opaque_callback_data"] = id
			maps.Copy(status, change)
			f.Expect(f.post(statusesOf(status)).Code).To(Equal(http.StatusOK))
		}
	}
	for name, c := range map[string]struct {
		first func(f *fixture, id string)
		asked bool
	}{
		"refused at once":             {refuse, true},
		"reported as failed":          {report(nil), true},
		"reported of a reply":         {report(object{"biz_opaque_callback_data": "reply"}), false},
		"reported of another number":  {report(object{"recipient_id": "16505550000"}), false},
		"reported of a number hidden": {report(object{"recipient_id": ""}), false},
		"delivered":                   {report(object{"status": "delivered"}), false},
	} {
		t.Run(name, func(t *testing.T) {
			f, made := newEcho(t)
			c.first(f, made.Request.ID)
			f.Expect(f.hintOf(made.Request.ID)).To(Equal(verification.HintAwaitingConfirmation), "whatever becomes of the question")
			before := len(f.graph.all())
			second := f.request("second", user, verification.WhatsApp)
			m := hidden(second.Code.Grouped(), otherHidden)
			m["timestamp"] = unixSeconds(f.clock.Now())
			f.Expect(f.post(webhookOf(m)).Code).To(Equal(http.StatusOK))
			want := before
			if c.asked {
				want++
			}
			f.Expect(f.graph.all()).To(HaveLen(want))
		})
	}
}

func TestEcho_notMe(t *testing.T) {
	for name, sender := range map[string]object{
		"by the user who sent the code": {},
		"by the owner of the number":    {"from": user, "from_user_id": otherHidden},
		"by the number alone":           {"from": user, "from_user_id": nil},
	} {
		t.Run(name, func(t *testing.T) {
			f, made := newEcho(t)
			f.sendHidden(firstCode, hiddenUser)
			confirm, decline := f.echoButtons(f.graph.all()[0])
			f.Expect(f.post(webhookOf(echoTapOf(decline, sender))).Code).To(Equal(http.StatusOK))
			state := f.state(made.Request.ID)
			f.Expect(state.Phase).To(Equal(verification.Expired))
			f.Expect(state.HintAt(f.clock.Now())).To(Equal(verification.HintDeclined))
			f.Expect(f.post(webhookOf(echoTapOf(confirm, nil))).Code).To(Equal(http.StatusOK))
			f.Expect(f.state(made.Request.ID).Phase).To(Equal(verification.Expired), "the end is the end")
			f.Expect(f.sendReplies()).To(ContainElement(WithTransform(seenCall.text, Equal(textDeclined))))
		})
	}
}

// TestEcho_rotatedSecret replaces the app secret between the question and the tap.
func TestEcho_rotatedSecret(t *testing.T) {
	f, made := newEcho(t)
	f.sendHidden(firstCode, hiddenUser)
	confirm, _ := f.echoButtons(f.graph.all()[0])
	f.change(func(s *settings.Settings) { s.WhatsApp.AppSecret = rotated(t, appSecret, "anothercanarysecret") })
	body := webhookOf(echoTapOf(confirm, nil))
	f.Expect(f.postTo(f.hook, body, sign(body, "anothercanarysecret")).Code).To(Equal(http.StatusOK))
	f.expectVerified(f.state(made.Request.ID), true)
}

// TestEcho_olderQuestion has more senders claim the number than a request can await. The question that was sent stays answerable.
func TestEcho_olderQuestion(t *testing.T) {
	f, made := newEcho(t)
	f.sendHidden(firstCode, hiddenUser)
	older, _ := f.echoButtons(f.graph.all()[0])
	for i := range verification.MaxContacts {
		f.sendHidden(firstCode, "US.1000000000000000000"+strconv.Itoa(i))
	}
	f.Expect(f.graph.all()).To(HaveLen(1))
	f.Expect(f.outcomes()).To(Equal(map[messenger.Outcome]int{
		messenger.OutcomeNeedEcho: 1, messenger.OutcomeEchoLimited: verification.MaxContacts,
	}), "the last of them has the outcome of the others")
	f.Expect(f.post(webhookOf(echoTapOf(older, nil))).Code).To(Equal(http.StatusOK))
	f.expectVerified(f.state(made.Request.ID), true)
}

// TestEcho_turnedOff has the tap come after the project stopped asking.
func TestEcho_turnedOff(t *testing.T) {
	f, made := newEcho(t)
	f.sendHidden(firstCode, hiddenUser)
	confirm, _ := f.echoButtons(f.graph.all()[0])
	f.change(func(s *settings.Settings) { s.WhatsApp.HiddenNumbers = settings.HiddenRefused })
	f.Expect(f.post(webhookOf(echoTapOf(confirm, nil))).Code).To(Equal(http.StatusOK))
	f.expectVerified(f.state(made.Request.ID), false)
	f.Expect(f.outcomes()).To(HaveKeyWithValue(messenger.OutcomeTapRefused, 1))
}

func TestEcho_replayed(t *testing.T) {
	f, made := newEcho(t)
	f.sendHidden(firstCode, hiddenUser)
	confirm, _ := f.echoButtons(f.graph.all()[0])
	tap := webhookOf(echoTapOf(confirm, nil))
	f.Expect(f.post(tap).Code).To(Equal(http.StatusOK))
	verified := f.state(made.Request.ID)
	f.clock.SetTime(started.Add(time.Hour))
	for range 3 {
		f.Expect(f.post(tap).Code).To(Equal(http.StatusOK))
	}
	f.Expect(f.state(made.Request.ID)).To(Equal(verified))
	f.Expect(f.sendReplies()).To(HaveLen(2), "one reply")
}
