package simulator

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"
)

// callGateway calls a method of the Gateway, and returns the result, or the error's word.
func (w *runningSimulator) callGateway(token, method, body string) (map[string]any, string) {
	w.t.Helper()
	header := http.Header{}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	status, answer := w.raw(http.MethodPost, "/"+method, body, header)
	w.Expect(status).To(Equal(http.StatusOK))
	if word, failed := answer["error"].(string); failed {
		return nil, word
	}
	w.Expect(answer).To(HaveKeyWithValue("ok", true))
	return answer["result"].(map[string]any), ""
}

func codeOf(number, more string) string { return fmt.Sprintf(`{"phone_number":%q%s}`, number, more) }

const gatewayOfTests, sendsCode = "sim_gateway:1", "sendVerificationMessage"

// TestGateway_sendsAndRefunds plays a code that is delivered, one that is not, and one to itself after checkSendAbility.
func TestGateway_sendsAndRefunds(t *testing.T) {
	now := clocktesting.NewFakeClock(noon)
	w := startSimulator(t, Options{Clock: now})
	sent, _ := w.callGateway(gatewayOfTests, sendsCode, codeOf("+"+adaNumber, `,"code":"12345678","ttl":60,"sender_username":"ada_books"`))
	w.Expect(sent).To(And(HaveKeyWithValue("request_cost", 0.01), HaveKeyWithValue("remaining_balance", 99.99),
		HaveKeyWithValue("phone_number", "+"+adaNumber), HaveKeyWithValue("is_refunded", false)))
	w.Expect(w.line("1")).To(HaveKeyWithValue("text", "12345678 is your verification code."))
	check := func(id any, code string) map[string]any {
		status, word := w.callGateway(gatewayOfTests, "checkVerificationStatus", fmt.Sprintf(`{"request_id":%q,"code":%q}`, id, code))
		w.Expect(word).To(BeEmpty())
		return status
	}
	w.Expect(check(sent["request_id"], "00000000")["verification_status"]).To(HaveKeyWithValue("status", "code_invalid"))
	w.Expect(check(sent["request_id"], "12345678")["verification_status"]).To(HaveKeyWithValue("status", "code_valid"))

	w.call(http.StatusNoContent, http.MethodPost, "/sim/codes", `{"platform":"telegram","failed":"0s"}`)
	lost, _ := w.callGateway(gatewayOfTests, sendsCode, codeOf("+"+adaNumber, `,"code":"1234","ttl":60`))
	w.Expect(check(lost["request_id"], "")).To(HaveKeyWithValue("is_refunded", false))
	now.Step(time.Minute)
	for range 2 {
		w.Expect(check(lost["request_id"], "")).To(And(HaveKeyWithValue("is_refunded", true), HaveKeyWithValue("remaining_balance", 99.99)))
	}

	able, _ := w.callGateway(gatewayOfTests, "checkSendAbility", codeOf("+"+adaNumber, ""))
	again := codeOf("+"+adaNumber, fmt.Sprintf(`,"code":"1234","request_id":%q`, able["request_id"]))
	free, _ := w.callGateway(gatewayOfTests, sendsCode, again)
	w.Expect(free["remaining_balance"]).To(Equal(able["remaining_balance"]))
	_, word := w.callGateway(gatewayOfTests, sendsCode, again)
	w.Expect(word).To(Equal("MESSAGE_ALREADY_SENT"))
	revoked, _ := w.callGateway(gatewayOfTests, "revokeVerificationMessage", fmt.Sprintf(`{"request_id":%q}`, free["request_id"]))
	w.Expect(revoked["delivery_status"]).To(HaveKeyWithValue("status", "revoked"))
	_, word = w.callGateway("sim_another", "checkVerificationStatus", fmt.Sprintf(`{"request_id":%q}`, free["request_id"]))
	w.Expect(word).To(Equal("REQUEST_ID_INVALID"), "another account's")
}

// TestGateway_refuses has each error, of its own and by a rule, and says nothing to the chat.
func TestGateway_refuses(t *testing.T) {
	w := startSimulator(t, Options{})
	w.call(http.StatusNoContent, http.MethodPost, "/sim/revoke", `{"credential": "sim_revoked"}`)
	good := codeOf("+"+adaNumber, `,"code":"1234"`)
	for _, row := range [][3]string{
		{"", good, "ACCESS_TOKEN_REQUIRED"},
		{"AAAA", good, "ACCESS_TOKEN_INVALID"},
		{"sim_revoked", good, "ACCESS_TOKEN_INVALID"},
		{gatewayOfTests, codeOf("49", `,"code":"1234"`), "PHONE_NUMBER_INVALID"},
		{gatewayOfTests, codeOf("+4915100000000", `,"code":"1234"`), "PHONE_NUMBER_NOT_FOUND"},
		{gatewayOfTests, codeOf("+"+adaNumber, `,"code":"123"`), "CODE_INVALID"},
		{gatewayOfTests, codeOf("+"+adaNumber, `,"code":"A2345678"`), "CODE_INVALID"},
		{gatewayOfTests, codeOf("+"+adaNumber, `,"code":"1234","ttl":29`), "TTL_INVALID"},
		{gatewayOfTests, codeOf("+"+adaNumber, `,"code":"1234","ttl":3601`), "TTL_INVALID"},
		{gatewayOfTests, codeOf("+"+adaNumber, `,"code":"1234","request_id":"x"`), "REQUEST_ID_INVALID"},
	} {
		_, word := w.callGateway(row[0], sendsCode, row[1])
		w.Expect(word).To(Equal(row[2]), row[1])
	}
	w.call(http.StatusNoContent, http.MethodPost, "/sim/codes", `{"platform":"telegram","gatewayError":"SENDER_NOT_OWNED","to":"+`+adaNumber+`"}`)
	_, word := w.callGateway(gatewayOfTests, sendsCode, good)
	w.Expect(word).To(Equal("SENDER_NOT_OWNED"))
	w.call(http.StatusNoContent, http.MethodPost, "/sim/codes", `{"platform":"telegram","waID":"4915100000001"}`)
	other, _ := w.callGateway(gatewayOfTests, sendsCode, good)
	w.Expect(other).To(HaveKeyWithValue("phone_number", "+4915100000001"))
	for _, wrong := range []string{
		`{"platform":"sms"}`, `{"platform":"telegram","error":131026}`, `{"gatewayError":"BALANCE_NOT_ENOUGH"}`,
		`{"platform":"telegram","gatewayError":"no word"}`,
	} {
		w.call(http.StatusBadRequest, http.MethodPost, "/sim/codes", wrong)
	}
	w.call(http.StatusBadRequest, http.MethodPost, "/sim/users/1/send", `{"text": "Hello"}`)
	messages := w.call(http.StatusOK, http.MethodGet, "/sim/sent", "")["messages"].([]any)
	w.Expect(messages[len(messages)-2]).To(And(HaveKeyWithValue("gatewayError", "SENDER_NOT_OWNED"), HaveKeyWithValue("refused", true)))
	w.Expect(messages[len(messages)-1]).To(HaveKeyWithValue("billable", true))
}

// TestGateway_runsOutOfFunds and takes what is paid for.
func TestGateway_runsOutOfFunds(t *testing.T) {
	w := startSimulator(t, Options{})
	w.sim.telegram.balances = map[string]float64{"gateway": gatewayCost}
	for _, want := range []string{"", "BALANCE_NOT_ENOUGH"} {
		_, word := w.callGateway(gatewayOfTests, sendsCode, codeOf("+"+adaNumber, `,"code":"1234"`))
		w.Expect(word).To(Equal(want))
	}
}
