package simulator

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	clocktesting "k8s.io/utils/clock/testing"
)

// codeBody returns the body of a send of the code 12345678 in a template.
func codeBody(to, template, language string) string {
	return fmt.Sprintf(`{"messaging_product": "whatsapp", %s, "biz_opaque_callback_data": "code:1", "type": "template", "template": {
		"name": %q, "language": {"code": %q}, "components": [
			{"type": "body", "parameters": [{"type": "text", "text": "12345678"}]},
			{"type": "button", "sub_type": "url", "index": "0", "parameters": [{"type": "text", "text": "12345678"}]}]}}`,
		encodeRecipient(to), template, language)
}

// errorCode returns the code of an answer that says no.
func errorCode(answer map[string]any) any { return answer["error"].(map[string]any)["code"] }

func TestCode_reachesWhoNeverWrote(t *testing.T) {
	w, c := registered(t)
	answer := w.sendMessage(http.StatusOK, codeBody("+"+adaNumber, "code", "de"))
	w.Expect(shapeOfValue(answer)).To(Equal(shapeOf(t, ownGolden(t, "answers/message_template"))))
	w.Expect(w.line("1")).To(And(HaveKeyWithValue("text", "12345678 is your verification code."), HaveKeyWithValue("from", "business")))
	w.Eventually(c.statusesByName).WithTimeout(patience).Should(And(HaveKey("sent"), HaveKeyWithValue("delivered",
		And(HaveField("Opaque", "code:1"), HaveField("Pricing.Category", "authentication")))))
	w.call(http.StatusOK, http.MethodPost, "/sim/users/1/open", `{"chat": "whatsapp:4915112345670"}`)
	w.Eventually(c.statusesByName).WithTimeout(patience).Should(HaveKey("read"))
	w.sendMessage(http.StatusOK, newText(adaNumber))
	w.Expect(w.listFailures()).To(HaveExactElements(0.0, 131047.0), "a code opens no window")

	w.Expect(w.readLedger()[0]).To(And(HaveKeyWithValue("to", "+49*********78"), HaveKeyWithValue("template", "code"), HaveKeyWithValue("language", "de"),
		HaveKeyWithValue("reference", "code:1"), HaveKeyWithValue("billable", true), HaveKeyWithValue("category", "authentication")))
	w.Expect(fmt.Sprint(w.readLedger())).NotTo(Or(ContainSubstring("12345678 "), ContainSubstring(adaNumber)))
}

// TestCode_templatesByName: what becomes of a code, and what the list says of its template.
func TestCode_templatesByName(t *testing.T) {
	w, _ := registered(t)
	for name, test := range map[string]struct {
		language string
		refused  any
		listed   types.GomegaMatcher // the first one in the list
	}{
		"anything":           {"pt_BR", nil, And(HaveKeyWithValue("status", "APPROVED"), HaveKeyWithValue("category", "AUTHENTICATION"))},
		"sim_missing":        {"en", 132001.0, nil},
		"sim_pending":        {"en", 132001.0, HaveKeyWithValue("status", "PENDING")},
		"sim_paused":         {"en", 132015.0, HaveKeyWithValue("status", "PAUSED")},
		"sim_disabled":       {"en", 132016.0, HaveKeyWithValue("status", "DISABLED")},
		"sim_utility":        {"en", nil, HaveKeyWithValue("category", "UTILITY")},
		"sim_without_button": {"en", 132000.0, HaveKeyWithValue("components", HaveLen(1))},
		"sim_late":           {"en", nil, HaveKeyWithValue("message_send_ttl_seconds", 900.0)},
		"sim_low_quality":    {"en", nil, HaveKeyWithValue("quality_score", HaveKeyWithValue("score", "RED"))},
		"sim_english":        {"de", 132001.0, HaveKeyWithValue("language", "en")},
	} {
		path := waba + "/message_templates?fields=name,language,status,category,components,message_send_ttl_seconds,quality_score&name=" + name
		listed := w.callGraph(http.StatusOK, http.MethodGet, path, "")
		if test.listed == nil {
			w.Expect(listed["data"]).To(BeEmpty(), name)
		} else {
			w.Expect(listed["data"]).To(ContainElement(test.listed), name)
			w.Expect(listed["data"].([]any)[0]).To(And(test.listed, HaveKeyWithValue("name", name)), name)
		}
		if test.refused == nil {
			w.sendMessage(http.StatusOK, codeBody(adaNumber, name, test.language))
			continue
		}
		_, answer := w.raw(http.MethodPost, "/v25.0/1234567890/messages", codeBody(adaNumber, name, test.language),
			http.Header{"Authorization": {"Bearer " + credential}})
		w.Expect(errorCode(answer)).To(Equal(test.refused), name)
	}
	golden := shapeOf(t, ownGolden(t, "answers/message_templates"))
	fields := "?name=code&fields=name,language,status,category,components,message_send_ttl_seconds,quality_score"
	w.Expect(shapeOfValue(w.callGraph(http.StatusOK, http.MethodGet, waba+"/message_templates"+fields, ""))).To(Equal(golden))
	w.Expect(w.callGraph(http.StatusOK, http.MethodGet, waba+"/message_templates", "")).To(HaveKeyWithValue("data", BeEmpty()))
	w.callGraph(http.StatusBadRequest, http.MethodGet, waba+"/message_templates?name=code&fields=color", "")
	w.call(http.StatusNoContent, http.MethodPost, "/sim/faults", `{"platform": "whatsapp", "method": "message_templates", "status": 500}`)
	w.callGraph(http.StatusInternalServerError, http.MethodGet, waba+"/message_templates?name=code", "")
}

// TestCode_isRefusedInAnotherForm than that of Meta's "Copy code button authentication templates".
func TestCode_isRefusedInAnotherForm(t *testing.T) {
	w, _ := registered(t)
	good := codeBody(adaNumber, "code", "en")
	for name, test := range map[string]struct {
		body string
		code float64
	}{
		"to a user id":             {codeBody(w.userID("1"), "code", "en"), 131062},
		"in no language":           {codeBody(adaNumber, "code", "xx"), 132001},
		"without the button":       {strings.Replace(good, `"sub_type": "url"`, `"sub_type": "quick_reply"`, 1), 132000},
		"another code to copy":     {strings.Replace(good, `"12345678"}]}]`, `"12345679"}]}]`, 1), 132012},
		"a code that is too long":  {strings.ReplaceAll(good, "12345678", "1234567890123456"), 132012},
		"without a product":        {strings.Replace(good, `"whatsapp"`, `""`, 1), 100},
		"another type of the code": {strings.ReplaceAll(good, `"type": "text"`, `"type": "payload"`), 132000},
	} {
		_, answer := w.raw(http.MethodPost, "/v25.0/1234567890/messages", test.body, http.Header{"Authorization": {"Bearer " + credential}})
		w.Expect(errorCode(answer)).To(Equal(test.code), name)
	}
	w.Expect(w.readLedger()).To(BeEmpty())
}

// TestCode_rulesAtOnce plays every error that was met in the field, and one that no page of Meta names.
func TestCode_rulesAtOnce(t *testing.T) {
	w, c := registered(t)
	codes := []int{999999}
	for code := range codeErrors {
		codes = append(codes, code)
	}
	for _, code := range codes {
		w.call(http.StatusNoContent, http.MethodPost, "/sim/codes", fmt.Sprintf(`{"error": %d}`, code))
		status, answer := w.raw(http.MethodPost, "/v25.0/1234567890/messages", codeBody(adaNumber, "code", "en"),
			http.Header{"Authorization": {"Bearer " + credential}})
		w.Expect(errorCode(answer)).To(BeEquivalentTo(code))
		w.Expect(status).To(BeNumerically(">=", 400))
	}
	w.Expect(w.readLedger()).To(HaveLen(len(codes)))
	w.Expect(w.readLedger()).To(HaveEach(And(HaveKeyWithValue("refused", true), HaveKeyWithValue("billable", false))))
	w.sendMessage(http.StatusOK, codeBody(adaNumber, "code", "en"))
	w.Eventually(c.statusesByName).WithTimeout(patience).Should(HaveKey("delivered"), "a rule is played once")
	w.Expect(c.statusesByName()).NotTo(HaveKey("failed"))
}

func TestCode_rulesOfFailedStatuses(t *testing.T) {
	now := clocktesting.NewFakeClock(noon)
	w, c := startSimulator(t, Options{Clock: now}), newCallback(t)
	w.Expect(w.sim.AddWhatsApp(WhatsAppAccount{PhoneNumberID: "1234567890", Number: "+4915112345670", AppSecret: credential, Callback: c.URL})).To(Succeed())
	w.call(http.StatusNoContent, http.MethodPost, "/sim/codes", `{"to": "+`+adaNumber+`", "error": 131049, "failed": "2s"}`)
	w.call(http.StatusNoContent, http.MethodPost, "/sim/codes", `{"to": "+`+malloryNumber+`", "error": 131030, "failed": "0s", "times": 2}`)
	w.sendMessage(http.StatusOK, codeBody(malloryNumber, "code", "en"))
	w.Eventually(c.postedValues).WithTimeout(patience).Should(HaveLen(1))
	w.Expect(c.statusesByName()["failed"]).To(And(HaveField("RecipientID", malloryNumber), HaveField("Opaque", "code:1"),
		HaveField("Errors", ConsistOf(HaveField("Code", 131030)))))
	w.sendMessage(http.StatusOK, codeBody("+"+adaNumber, "code", "en"))
	w.Expect(w.call(http.StatusOK, http.MethodGet, "/sim/users/1/chats", "")["chats"]).To(BeEmpty(), "no code has reached Ada")
	w.sendMessage(http.StatusOK, codeBody("4915100000000", "code", "en"))
	w.Eventually(c.postedValues).WithTimeout(patience).Should(HaveLen(2))
	w.Expect(c.statusesByName()["failed"].Errors).To(ConsistOf(HaveField("Code", 131026)), "no user has the number; Ada's status is not due yet")
	now.Step(2 * time.Second)
	w.Eventually(c.postedValues).WithTimeout(patience).Should(HaveLen(3))
	w.Expect(c.statusesByName()["failed"].Errors).To(ConsistOf(HaveField("Code", 131049)))
	w.Expect(w.listFailures()).To(HaveExactElements(131030.0, 131049.0, 131026.0))
	w.Expect(w.readLedger()).NotTo(ContainElement(HaveKey("refused")))
	w.call(http.StatusNoContent, http.MethodDelete, "/sim/codes", "")
	w.sendMessage(http.StatusOK, codeBody(malloryNumber, "code", "en"))
	w.Expect(w.listFailures()[3:]).To(HaveExactElements(0.0))
}

func TestCode_answers(t *testing.T) {
	now := clocktesting.NewFakeClock(noon)
	w := startSimulator(t, Options{Clock: now})
	w.Expect(w.sim.AddWhatsApp(WhatsAppAccount{PhoneNumberID: "1234567890", Number: "+4915112345670", AppSecret: credential})).To(Succeed())
	for rule, want := range map[string]map[string]any{
		`{"waID": "none"}`:         {"input": "525512345678"},
		`{"waID": "491700000000"}`: {"input": "525512345678", "wa_id": "491700000000"},
		`{}`:                       {"input": "525512345678", "wa_id": "5215512345678"},
	} {
		w.call(http.StatusNoContent, http.MethodPost, "/sim/codes", rule)
		w.Expect(w.sendMessage(http.StatusOK, codeBody("525512345678", "code", "en"))["contacts"]).To(ConsistOf(Equal(want)), rule)
	}

	w.call(http.StatusNoContent, http.MethodPost, "/sim/codes", `{"loseAnswer": true}`)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/v25.0/1234567890/messages",
		strings.NewReader(codeBody(adaNumber, "code", "en")))
	w.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Authorization", "Bearer "+credential)
	_, err = (&http.Transport{DisableKeepAlives: true}).RoundTrip(request) //nolint:bodyclose // there is no answer
	w.Expect(err).To(HaveOccurred())
	w.Expect(w.line("1")).To(HaveKeyWithValue("text", HavePrefix("12345678 ")), "the answer alone is lost")

	w.call(http.StatusNoContent, http.MethodPost, "/sim/codes", `{"delay": "12s"}`)
	answered := make(chan map[string]any, 1)
	go func() { answered <- w.sendMessage(http.StatusOK, codeBody(malloryNumber, "code", "en")) }()
	w.Eventually(w.readLedger).WithTimeout(patience).Should(HaveLen(5))
	w.Expect(answered).NotTo(Receive())
	w.Eventually(func() chan map[string]any {
		now.Step(6 * time.Second)
		return answered
	}).WithTimeout(patience).Should(Receive(HaveKey("messages")))

	for _, wrong := range []string{
		`{"to": "4915112345678"}`, `{"error": -1}`, `{"failed": "2s"}`, `{"error": 131026, "failed": "soon"}`, `{"waID": "+49"}`, `{"delay": "-1s"}`,
		`{"times": -1}`, `{"colour": "red"}`,
	} {
		w.call(http.StatusBadRequest, http.MethodPost, "/sim/codes", wrong)
	}
}
