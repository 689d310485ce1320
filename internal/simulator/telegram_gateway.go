package simulator

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/settings"
)

// Telegram's Gateway (core.telegram.org/gateway/api). Its errors are one word each; the answer to all calls has the status 200.

const (
	// gatewayCost is the price of a code in US dollars, gatewayFunds what each account has at first.
	gatewayCost, gatewayFunds = 0.01, 100.0
	// gatewayChat is the chat in which users find their codes.
	gatewayChat, gatewayTitle = "VerificationCodes", "Verification Codes"
	maxGatewayCodes           = 1000
)

// gatewayCode is a code that the Gateway took, or may take after checkSendAbility.
type gatewayCode struct {
	id, account, number, code string
	cost                      float64
	// status is empty before a code is sent.
	status, verification string
	expires              time.Time
	refunded             bool
}

var gatewayDigits = regexp.MustCompile(`^[0-9]{4,8}$`)

// gatewayMethods are the methods. Each returns the code that it is about, or an error's word. The lock is held.
var gatewayMethods = map[string]func(tg *telegram, account string, in parameters, rule codeRule) (*gatewayCode, string){
	"checkSendAbility": func(tg *telegram, account string, in parameters, _ codeRule) (*gatewayCode, string) {
		return tg.payCode(account, in)
	},
	"sendVerificationMessage":   (*telegram).sendVerification,
	"checkVerificationStatus":   (*telegram).checkVerification,
	"revokeVerificationMessage": (*telegram).revokeVerification,
}

func (tg *telegram) serveGateway(w http.ResponseWriter, r *http.Request, method string) {
	if e := tg.takeFault(method); e != nil {
		refuseBot(w, e)
		return
	}
	in, e := readParameters(w, r)
	if e != nil {
		refuseBot(w, e)
		return
	}
	status, rule, word := tg.callGateway(method, r.Header.Get("Authorization"), in)
	tg.playAnswer(r, rule)
	if word != "" {
		answerJSON(w, http.StatusOK, map[string]any{"ok": false, "error": word})
		return
	}
	answerBot(w, status, "")
}

func (tg *telegram) callGateway(method, authorization string, in parameters) (map[string]any, codeRule, string) {
	tg.mu.Lock()
	defer tg.mu.Unlock()
	token, found := strings.CutPrefix(authorization, "Bearer ")
	switch {
	case !found:
		return nil, codeRule{}, "ACCESS_TOKEN_REQUIRED"
	case !tg.acceptsCredential(token):
		return nil, codeRule{}, "ACCESS_TOKEN_INVALID"
	}
	var rule codeRule
	if method == "sendVerificationMessage" {
		rule, _ = tg.takeCodeRule(onTelegram, strings.TrimPrefix(in["phone_number"], "+"), tg.findByPhone(in["phone_number"]))
	}
	account, _, _ := strings.Cut(strings.TrimPrefix(token, settings.SimulatorPrefix), ":")
	c, word := gatewayMethods[method](tg, account, in, rule)
	if word != "" {
		return nil, rule, word
	}
	status := map[string]any{
		"request_id": c.id, "phone_number": c.number, "request_cost": c.cost, "is_refunded": c.refunded,
		"remaining_balance": tg.balances[account],
	}
	if rule.WaID != "" {
		status["phone_number"] = strings.TrimPrefix("+"+rule.WaID, "+"+noWaID)
	}
	if c.status != "" {
		status["delivery_status"] = map[string]any{"status": c.status, "updated_at": tg.clock.Now().Unix()}
	}
	if c.verification != "" {
		status["verification_status"] = map[string]any{"status": c.verification, "updated_at": tg.clock.Now().Unix()}
	}
	return status, rule, ""
}

func (tg *telegram) findByPhone(number string) *user {
	i := slices.IndexFunc(tg.phones.users, func(u *user) bool { return u.Phone == number })
	if i < 0 {
		return nil
	}
	return tg.phones.users[i]
}

// payCode takes the price of a code to a number.
func (tg *telegram) payCode(account string, in parameters) (*gatewayCode, string) {
	if tg.balances == nil {
		tg.balances = map[string]float64{}
	}
	balance, known := tg.balances[account]
	if !known {
		balance = gatewayFunds
	}
	switch {
	case !e164.MatchString(in["phone_number"]):
		return nil, "PHONE_NUMBER_INVALID"
	case tg.findByPhone(in["phone_number"]) == nil:
		return nil, "PHONE_NUMBER_NOT_FOUND"
	case balance < gatewayCost:
		return nil, "BALANCE_NOT_ENOUGH"
	}
	tg.balances[account] = balance - gatewayCost
	c := &gatewayCode{
		id: "gw" + strconv.FormatInt(tg.clock.Now().UnixNano(), 36) + strconv.Itoa(len(tg.codes)), account: account,
		number: in["phone_number"], cost: gatewayCost,
	}
	tg.codes = appendBounded(tg.codes, c, maxGatewayCodes)
	return c, ""
}

func (tg *telegram) sendVerification(account string, in parameters, rule codeRule) (*gatewayCode, string) {
	ttl := in.number("ttl", 3600, 0, 1<<31)
	sent := sentMessage{
		Platform: onTelegram, Account: account, To: maskAddress(in["phone_number"]), Type: "code", Reference: in["payload"],
		GatewayError: rule.GatewayError,
	}
	c, found := tg.findCode(account, in["request_id"])
	switch {
	case sent.GatewayError != "":
	case !gatewayDigits.MatchString(in["code"]):
		sent.GatewayError = "CODE_INVALID"
	case ttl < 30 || ttl > 3600:
		sent.GatewayError = "TTL_INVALID"
	case in["request_id"] == "":
		c, sent.GatewayError = tg.payCode(account, in)
	case !found:
		sent.GatewayError = "REQUEST_ID_INVALID"
	case c.number != in["phone_number"]:
		sent.GatewayError = "PHONE_NUMBER_MISMATCH"
	case c.status != "":
		sent.GatewayError = "MESSAGE_ALREADY_SENT"
	}
	if sent.GatewayError != "" {
		sent.Refused = true
		tg.recordSent(sent)
		return nil, sent.GatewayError
	}
	c.code, c.status, c.expires = in["code"], "sent", tg.clock.Now().Add(time.Duration(ttl)*time.Second)
	if rule.Failed == "" {
		c.status = "delivered"
		tg.showCode(tg.findByPhone(c.number), in["sender_username"], c)
	}
	sent.Billable = true
	tg.recordSent(sent)
	return c, ""
}

// showCode shows a code in the user's chat of codes.
func (tg *telegram) showCode(u *user, sender string, c *gatewayCode) {
	title := gatewayTitle
	if sender != "" {
		title += " (@" + sender + ")"
	}
	chat := u.openChat(onTelegram, gatewayChat, title)
	chat.addLine(&line{
		ID: c.id, From: fromBusiness, At: tg.clock.Now().UTC(), Text: c.code + " is your verification code.",
	})
	tg.publish(event{Type: "reply", User: u.ID, Chat: chat.ID, Platform: onTelegram})
}

func (tg *telegram) findCode(account, id string) (*gatewayCode, bool) {
	i := slices.IndexFunc(tg.codes, func(c *gatewayCode) bool { return c.id == id && c.account == account })
	if i < 0 {
		return nil, false
	}
	return tg.codes[i], true
}

// checkVerification returns what became of a code. One that was not delivered before its end is refunded.
func (tg *telegram) checkVerification(account string, in parameters, _ codeRule) (*gatewayCode, string) {
	c, found := tg.findCode(account, in["request_id"])
	if !found {
		return nil, "REQUEST_ID_INVALID"
	}
	over := c.status != "" && !tg.clock.Now().Before(c.expires)
	if over && c.status == "sent" {
		c.status, c.refunded = "expired", true
		tg.balances[account] += c.cost
	}
	switch {
	case in["code"] == "" || c.verification == "code_valid":
	case over:
		c.verification = "expired"
	case in["code"] == c.code:
		c.verification = "code_valid"
	default:
		c.verification = "code_invalid"
	}
	return c, ""
}

func (tg *telegram) revokeVerification(account string, in parameters, _ codeRule) (*gatewayCode, string) {
	c, found := tg.findCode(account, in["request_id"])
	if !found {
		return nil, "REQUEST_ID_INVALID"
	}
	c.status = "revoked"
	return c, ""
}
