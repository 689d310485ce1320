package simulator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	botapi "github.com/phoneproof/phoneproof/internal/messenger/telegram"
)

// The users of the tests: Ada is known by the number, Mallory by the number and a username, Noa by the username alone.
const (
	adaNumber     = "4915112345678"
	noaNumber     = "972502345678"
	malloryNumber = "4915198765432"
)

// newText returns the body of a send to a number, or to a user id.
func newText(to string) string {
	return fmt.Sprintf(`{"messaging_product": "whatsapp", %s, "biz_opaque_callback_data": "reply",
		"type": "text", "text": {"body": "Thank you."}}`, encodeRecipient(to))
}

func encodeRecipient(to string) string {
	if strings.Contains(to, ".") {
		return fmt.Sprintf(`"recipient": %q`, to)
	}
	return fmt.Sprintf(`"to": %q`, to)
}

// newQuestion returns the body of a send with two buttons, Confirm and Not me.
func newQuestion(to, confirm, notMe string) string {
	return fmt.Sprintf(`{"messaging_product": "whatsapp", %s, "type": "interactive", "interactive": {
		"type": "button", "body": {"text": "Is it you?"}, "action": {"buttons": [
			{"type": "reply", "reply": {"id": %q, "title": "Confirm"}}, {"type": "reply", "reply": {"id": %q, "title": "Not me"}}]}}}`,
		encodeRecipient(to), confirm, notMe)
}

// callGraph calls the Graph API with the credential of the tests.
func (w *runningSimulator) callGraph(status int, method, path, body string) map[string]any {
	w.t.Helper()
	got, answer := w.raw(method, "/v25.0/"+path, body, http.Header{"Authorization": {"Bearer " + credential}})
	w.Expect(got).To(Equal(status), "%s %s: %v", method, path, answer)
	return answer
}

// sendMessage sends a message by the account of the tests.
func (w *runningSimulator) sendMessage(status int, body string) map[string]any {
	w.t.Helper()
	return w.callGraph(status, http.MethodPost, "1234567890/messages", body)
}

// idOf returns the id of a message from the answer to its send.
func idOf(answer map[string]any) string {
	return answer["messages"].([]any)[0].(map[string]any)["id"].(string)
}

// changeAccount changes the rules of the account of the tests.
func (w *runningSimulator) changeAccount(rules string) {
	w.t.Helper()
	w.call(http.StatusNoContent, http.MethodPut, "/sim/accounts/whatsapp/1234567890", rules)
}

// userID returns the id by which the account of the tests knows a user.
func (w *runningSimulator) userID(ref string) string {
	w.t.Helper()
	w.sim.mu.Lock()
	defer w.sim.mu.Unlock()
	u, f := w.sim.phones.findUser(ref)
	w.Expect(f).NotTo(HaveOccurred())
	return u.businessScopedID(w.sim.whatsApp.businesses[0])
}

// writeAs has a user write to the account of the tests.
func (w *runningSimulator) writeAs(user string) {
	w.t.Helper()
	w.call(http.StatusAccepted, http.MethodPost, "/sim/users/"+user+"/send", `{"link": "`+waLink+`"}`)
}

// statusesByName returns what was posted of the statuses, by their names.
func (c *callback) statusesByName() map[string]waStatus {
	all := map[string]waStatus{}
	for _, v := range c.postedValues() {
		for _, st := range v.Statuses {
			all[st.Status] = st
		}
	}
	return all
}

// postedValues returns the values of all webhooks.
func (c *callback) postedValues() []waValue {
	var all []waValue
	for _, p := range c.all() {
		var envelope waEnvelope
		if json.Unmarshal(p.body, &envelope) == nil && len(envelope.Entry) == 1 {
			all = append(all, envelope.Entry[0].Changes[0].Value)
		}
	}
	return all
}

func (w *runningSimulator) readLedger() []any {
	w.t.Helper()
	return w.call(http.StatusOK, http.MethodGet, "/sim/sent", "")["messages"].([]any)
}

// listFailures returns the codes of the messages that could not be delivered, in their order; 0 for one that could.
func (w *runningSimulator) listFailures() []any {
	w.t.Helper()
	codes := []any{}
	for _, m := range w.readLedger() {
		code, failed := m.(map[string]any)["error"]
		if !failed {
			code = 0.0
		}
		codes = append(codes, code)
	}
	return codes
}

func TestWindow_opensForWhoWrote(t *testing.T) {
	w, _ := registered(t)
	noa := w.userID("4")
	for _, to := range []string{"+" + adaNumber, "+" + noaNumber, noa, "+4915100000000", "DE.123"} {
		w.sendMessage(http.StatusOK, newText(to))
	}
	w.Expect(w.listFailures()).To(HaveExactElements(131047.0, 131047.0, 131047.0, 131026.0, 131026.0), "no user wrote, so no user is written to")

	w.call(http.StatusOK, http.MethodPost, "/sim/users/1/open", `{"link": "`+waLink+`"}`)
	w.sendMessage(http.StatusOK, newText(adaNumber)) // a link that was opened is no message
	w.writeAs("1")
	w.Expect(w.sendMessage(http.StatusOK, newText("+"+adaNumber))).
		To(HaveKeyWithValue("contacts", ConsistOf(Equal(map[string]any{"input": "+" + adaNumber, "wa_id": adaNumber}))))
	w.Expect(w.sendMessage(http.StatusOK, newText(w.userID("1")))).
		To(HaveKeyWithValue("contacts", ConsistOf(Equal(map[string]any{"input": w.userID("1"), "user_id": w.userID("1")}))))
	w.sendMessage(http.StatusOK, newText("+"+noaNumber)) // the window of Ada is not Noa's
	w.Expect(w.listFailures()[5:]).To(HaveExactElements(131047.0, 0.0, 0.0, 131047.0))

	w.writeAs("4")
	w.sendMessage(http.StatusOK, newText(noa))
	w.Expect(w.line("4")).To(HaveKeyWithValue("text", "Thank you."))
	w.sendMessage(http.StatusOK, newQuestion(noaNumber, "echo:1", "notme:1"))
	w.Expect(w.line("4")).To(HaveKeyWithValue("text", "Is it you?"), "a message to a number is shown to its user, who hides it")
}

func TestWindow_closesAfterADay(t *testing.T) {
	now := clocktesting.NewFakeClock(noon)
	w := startSimulator(t, Options{Clock: now})
	w.Expect(w.sim.AddWhatsApp(WhatsAppAccount{PhoneNumberID: "1234567890", Number: "+4915112345670", AppSecret: credential})).To(Succeed())
	w.writeAs("1")
	now.Step(24 * time.Hour)
	w.sendMessage(http.StatusOK, newText(adaNumber))
	now.Step(time.Second)
	w.sendMessage(http.StatusOK, newText(adaNumber))
	w.writeAs("1")
	w.sendMessage(http.StatusOK, newText(adaNumber))
	w.Expect(w.listFailures()).To(HaveExactElements(0.0, 131047.0, 0.0))
}

func TestSend_failuresAreStatuses(t *testing.T) {
	w, c := registered(t)
	w.Expect(shapeOfValue(w.sendMessage(http.StatusOK, newText("+"+adaNumber)))).To(Equal(shapeOf(t, ownGolden(t, "answers/message"))))
	w.Eventually(c.statusesByName).WithTimeout(patience).Should(HaveKey("failed"))
	st := c.statusesByName()["failed"]
	w.Expect(st.Errors).To(ConsistOf(And(HaveField("Code", 131047), HaveField("Title", "Re-engagement message"))))
	w.Expect(st).To(And(HaveField("RecipientID", adaNumber), HaveField("RecipientUserID", BeEmpty()), HaveField("Opaque", "reply"),
		HaveField("Pricing", BeNil())))

	w.Expect(shapeOfValue(w.sendMessage(http.StatusOK, newText(w.userID("4"))))).To(Equal(shapeOf(t, ownGolden(t, "answers/message_user_id"))))
	w.Eventually(c.all).WithTimeout(patience).Should(HaveLen(2))
	w.Expect(c.postedValues()[1].Statuses[0]).To(And(HaveField("RecipientID", BeEmpty()), HaveField("RecipientUserID", w.userID("4"))))
}

func TestSend_failsWithTheCodeOfTheAccount(t *testing.T) {
	w, c := registered(t)
	w.writeAs("1")
	w.changeAccount(`{"failWith": 131030}`)
	w.sendMessage(http.StatusOK, newText(adaNumber))
	w.Eventually(c.statusesByName).WithTimeout(patience).Should(HaveKeyWithValue("failed", HaveField("Errors", ConsistOf(HaveField("Code", 131030)))))
	w.changeAccount(`{"subscribed": true}`)
	w.sendMessage(http.StatusOK, newText(adaNumber))
	w.changeAccount(`{"failWith": 0}`)
	w.sendMessage(http.StatusOK, newText(adaNumber))
	w.Expect(w.listFailures()).To(HaveExactElements(131030.0, 131030.0, 0.0), "what is left out stays")
}

func TestSend_failedStatusesHaveMetasShape(t *testing.T) {
	for to, golden := range map[string]string{adaNumber: "status_failed_window", "4915100000000": "status_failed_undeliverable"} {
		w, c := registered(t)
		w.sendMessage(http.StatusOK, newQuestion(to, "echo:1", "notme:1"))
		w.Eventually(c.all).WithTimeout(patience).Should(HaveLen(1))
		var want waEnvelope
		w.Expect(json.Unmarshal(ownGolden(t, "in/"+golden), &want)).To(Succeed())
		w.Expect(shapeOf(t, c.all()[0].body)).To(Equal(shapeOf(t, ownGolden(t, "in/"+golden))))
		w.Expect(c.postedValues()[0].Statuses[0].Errors).To(Equal(want.Entry[0].Changes[0].Value.Statuses[0].Errors), "in Meta's words")
	}
}

// TestStatuses_haveMetasShape compares each status with its golden, and says who is named in it.
func TestStatuses_haveMetasShape(t *testing.T) {
	all := map[string]string{"sent": "status_sent", "delivered": "status_delivered", "read": "status_read"}
	delivered := func(golden string) map[string]string { return map[string]string{"delivered": golden} }
	for name, test := range map[string]struct {
		user, to string
		shapes   map[string]string // of the goldens, by status
		number   string            // what recipient_id is
	}{
		"to a number":                      {"5", malloryNumber, all, malloryNumber},
		"to an id":                         {"5", "", all, malloryNumber},
		"to an id that hides the number":   {"4", "", delivered("status_delivered_user_id"), ""},
		"to the number that an id hides":   {"4", noaNumber, delivered("status_delivered"), noaNumber},
		"to what WhatsApp calls otherwise": {"2", "525512345678", delivered("status_delivered_free"), "5215512345678"},
		"to a user without a username":     {"1", adaNumber, delivered("status_delivered_free"), adaNumber},
	} {
		t.Run(name, func(t *testing.T) {
			w, c := registered(t)
			w.writeAs(test.user)
			to := test.to
			if to == "" {
				to = w.userID(test.user)
			}
			w.sendMessage(http.StatusOK, newText(to))
			w.Eventually(c.statusesByName).WithTimeout(patience).Should(And(HaveKey("sent"), HaveKey("delivered"), Not(HaveKey("read"))))
			w.call(http.StatusOK, http.MethodPost, "/sim/users/"+test.user+"/open", `{"chat": "whatsapp:4915112345670"}`)
			w.Eventually(c.statusesByName).WithTimeout(patience).Should(HaveKey("read"))
			for status, golden := range test.shapes {
				want := shapeOf(t, ownGolden(t, "in/"+golden))
				want[".entry[].changes[].value.statuses[].biz_opaque_callback_data string"] = true
				w.Expect(shapeOf(t, c.bodyOfStatus(status))).To(Equal(want), status)
			}
			for status, st := range c.statusesByName() {
				w.Expect(st).To(And(HaveField("RecipientID", test.number), HaveField("RecipientUserID", w.userID(test.user)),
					HaveField("Opaque", "reply")))
				if status == "read" {
					w.Expect(st.Pricing).To(BeNil())
				} else {
					w.Expect(st.Pricing).To(HaveValue(Equal(waPricing{true, "PMP", "regular", "service"})))
				}
			}
		})
	}
}

// bodyOfStatus returns the webhook of a status.
func (c *callback) bodyOfStatus(status string) []byte {
	for _, p := range c.all() {
		if strings.Contains(string(p.body), `"status":"`+status+`"`) {
			return p.body
		}
	}
	return nil
}

func TestLedger_showsWhatWasSentAndNotToWhom(t *testing.T) {
	w, c := registered(t)
	w.Expect(w.readLedger()).To(BeEmpty())
	w.writeAs("1")
	w.writeAs("4")
	w.Eventually(c.all).WithTimeout(patience).Should(HaveLen(2))
	w.Expect(w.readLedger()).To(BeEmpty(), "what users write is not in it")
	w.sendMessage(http.StatusOK, newText("+"+adaNumber))
	w.sendMessage(http.StatusOK, newQuestion(w.userID("4"), "echo:secret", "notme:secret"))
	w.sendMessage(http.StatusOK, newText("4915100000000"))
	w.sendMessage(http.StatusBadRequest, `{"messaging_product": "whatsapp"}`)
	w.call(http.StatusAccepted, http.MethodPost, "/sim/users/1/send", `{"link": "`+tgLink+`"}`)
	w.Expect(w.botAPI.SendMessage(t.Context(), telegramAccount(token), w.sim.phones.users[0].TelegramID, "Thank you.", botapi.Keyboard{})).To(Succeed())

	got := w.readLedger()
	w.Expect(got).To(HaveExactElements(
		And(HaveKeyWithValue("seq", BeEquivalentTo(1)), HaveKeyWithValue("account", "1234567890"), HaveKeyWithValue("to", "+49*********78"),
			HaveKeyWithValue("type", "text"), HaveKeyWithValue("billable", true), HaveKeyWithValue("category", "service"), Not(HaveKey("error"))),
		And(HaveKeyWithValue("recipient", MatchRegexp(`^IL\.\*+[0-9]{2}$`)), HaveKeyWithValue("type", "interactive"),
			HaveKeyWithValue("buttons", HaveExactElements("Confirm", "Not me")), Not(HaveKey("to"))),
		And(HaveKeyWithValue("error", BeEquivalentTo(131026)), HaveKeyWithValue("billable", false), Not(HaveKey("category"))),
		And(HaveKeyWithValue("platform", "telegram"), HaveKeyWithValue("account", "shop_bot"), HaveKeyWithValue("billable", false)),
	))
	w.Expect(w.call(http.StatusOK, http.MethodGet, "/sim/sent", "")).
		To(And(HaveKeyWithValue("total", BeEquivalentTo(4)), HaveKeyWithValue("billed", BeEquivalentTo(2))))
	text := fmt.Sprint(got)
	for _, secret := range []string{adaNumber, w.userID("4"), "secret", "Thank you"} {
		w.Expect(text).NotTo(ContainSubstring(secret))
	}
	w.call(http.StatusNoContent, http.MethodPost, "/sim/reset", "")
	w.Expect(w.readLedger()).To(BeEmpty())
}

func TestLedger_isBounded(t *testing.T) {
	g, h := NewWithT(t), newHub(Options{Clock: clocktesting.NewFakeClock(noon)})
	for range maxSent + 2 {
		h.recordSent(sentMessage{Billable: true})
	}
	g.Expect(h.sent.Messages).To(HaveLen(maxSent))
	g.Expect(h.sent.Messages[0].Seq).To(Equal(3))
	g.Expect(h.sent.copyAll()).To(And(HaveField("Total", maxSent+2), HaveField("Billed", maxSent+2)))
}

func TestMaskAddress(t *testing.T) {
	for address, want := range map[string]string{
		"+4915112345678": "+49*********78", "DE.1234567890": "DE.********90", "7300000001": "730*****01", "+491512": "*******", "": "",
	} {
		NewWithT(t).Expect(maskAddress(address)).To(Equal(want))
	}
}

func TestUsers_areKnownByBothIDsUnlessTheyHideTheNumber(t *testing.T) {
	for name, test := range map[string]struct {
		user, number, username string
	}{
		"without a username":       {"1", adaNumber, ""},
		"with one and the number":  {"5", malloryNumber, "@mallory"},
		"with one, and no number":  {"4", "", "@noa_levi"},
		"of another number abroad": {"3", "553187654321", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, c := registered(t)
			w.writeAs(test.user)
			w.Eventually(c.postedValues).WithTimeout(patience).Should(HaveLen(1))
			v := c.postedValues()[0]
			w.Expect(v.Messages[0]).To(And(HaveField("From", test.number), HaveField("FromUserID", w.userID(test.user))))
			w.Expect(v.Contacts[0]).To(And(HaveField("WaID", test.number), HaveField("UserID", w.userID(test.user)),
				HaveField("Profile.Username", test.username)))
		})
	}
}

func TestTap_namesTheQuestionAndItsButton(t *testing.T) {
	for title, id := range map[string]string{"Confirm": "echo:1", "Not me": "notme:1"} {
		for _, user := range []struct{ id, number string }{{"1", adaNumber}, {"4", ""}} {
			t.Run(title+" by "+user.id, func(t *testing.T) {
				w, c := registered(t)
				w.writeAs(user.id)
				w.sendMessage(http.StatusOK, newQuestion(w.userID(user.id), "echo:0", "notme:0"))
				asked := idOf(w.sendMessage(http.StatusOK, newQuestion(w.userID(user.id), "echo:1", "notme:1")))
				w.call(http.StatusConflict, http.MethodPost, "/sim/users/"+user.id+"/tap", `{"title": "Perhaps"}`)
				w.call(http.StatusAccepted, http.MethodPost, "/sim/users/"+user.id+"/tap", `{"title": "`+title+`"}`)
				w.call(http.StatusConflict, http.MethodPost, "/sim/users/"+user.id+"/tap", `{"title": "`+title+`"}`)
				w.Eventually(c.statusesByName).WithTimeout(patience).Should(HaveKey("read"))
				w.Eventually(c.text).WithTimeout(patience).Should(ContainSubstring("button_reply"))
				for _, v := range c.postedValues() {
					if len(v.Messages) == 0 || v.Messages[0].Interactive == nil {
						continue
					}
					m := v.Messages[0]
					w.Expect(m).To(And(HaveField("Context.ID", asked), HaveField("Context.From", "4915112345670"),
						HaveField("From", user.number), HaveField("FromUserID", w.userID(user.id))))
					w.Expect(m.Interactive).To(HaveValue(Equal(waInteractive{Type: "button_reply", Reply: &replyButton{id, title}})))
				}
			})
		}
	}
}

func TestSend_mayForwardAText(t *testing.T) {
	for link, holds := range map[string]string{waLink: `"context":{"forwarded":true}`, tgLink: `"forward_origin":{"type":"user"`} {
		w, c := registered(t)
		w.call(http.StatusAccepted, http.MethodPost, "/sim/users/1/send", `{"link": "`+link+`", "forwarded": true}`)
		w.Eventually(c.text).WithTimeout(patience).Should(ContainSubstring(holds))
		shapes := knownOfMeta(t)
		if link == tgLink {
			shapes = known(t, "telegram/testdata/in/*.json")
		}
		w.Expect(unknownIn(shapeOf(t, c.all()[0].body), shapes)).To(BeEmpty())
	}
}
