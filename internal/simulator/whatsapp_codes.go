package simulator

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// codeRule is what becomes of a code in place of its delivery.
type codeRule struct {
	// To is the number, in E.164; every one if empty.
	To string `json:"to,omitempty"`
	// Error is the code of Meta's error; 0 for none, and the code is delivered.
	Error int `json:"error,omitempty"`
	// Failed has Meta take the code, and report the error in a status failed after that time, such as 2s; empty for a refusal at once.
	Failed string `json:"failed,omitempty"`
	// WaID is what the answer calls the number, in digits, or none; what WhatsApp calls it if empty.
	WaID string `json:"waID,omitempty"`
	// Delay is how long the answer takes. What it is about has happened before.
	Delay string `json:"delay,omitempty"`
	// LoseAnswer ends the connection in place of the answer.
	LoseAnswer bool `json:"loseAnswer,omitempty"`
	// Times is how often; once if zero.
	Times int `json:"times,omitempty"`

	failed, delay time.Duration
}

// noWaID is the WaID of an answer that has none.
const noWaID = "none"

// addCodeRule has the next codes be played by a rule.
func (wa *whatsApp) addCodeRule(rule codeRule) *failure {
	var f *failure
	switch {
	case rule.To != "" && !e164.MatchString(rule.To):
		return badRequest("to", "want the number in E.164, as +4915112345678")
	case rule.Error < 0 || rule.Failed != "" && rule.Error == 0:
		return badRequest("error", "want a positive code, and one beside failed")
	case rule.WaID != "" && rule.WaID != noWaID && !waDigits.MatchString(rule.WaID):
		return badRequest("waID", "want the digits of a number, or none")
	case rule.Times < 0:
		return badRequest("times", "want at least 0")
	}
	if rule.failed, f = durationOf("failed", rule.Failed); f != nil {
		return f
	}
	if rule.delay, f = durationOf("delay", rule.Delay); f != nil {
		return f
	}
	rule.Times = max(1, rule.Times)
	wa.mu.Lock()
	defer wa.mu.Unlock()
	if len(wa.codeRules) >= maxFaults {
		return tooMany(maxFaults, "rules of codes")
	}
	wa.codeRules = append(wa.codeRules, &rule)
	return nil
}

// takeCodeRule returns the rule of the next code to a number. The lock is held.
func (wa *whatsApp) takeCodeRule(b *business, digits string, u *user) codeRule {
	for i, rule := range wa.codeRules {
		if rule.To != "" && rule.To != "+"+digits && (u == nil || rule.To != u.Phone) {
			continue
		}
		if rule.Times--; rule.Times == 0 {
			wa.codeRules = slices.Delete(wa.codeRules, i, i+1)
		}
		return *rule
	}
	if b.FailWith != 0 {
		return codeRule{Error: b.FailWith, Failed: "0s"}
	}
	return codeRule{}
}

// postCode takes a code in a template. It needs no open window.
func (wa *whatsApp) postCode(w http.ResponseWriter, r *http.Request, b *business, m *outgoing, code string) {
	rule, answer, e := wa.deliverCode(b, m, code)
	if rule.delay > 0 {
		timer := wa.clock.NewTimer(rule.delay)
		select {
		case <-timer.C():
		case <-r.Context().Done():
		}
		timer.Stop()
	}
	switch {
	case rule.LoseAnswer:
		panic(http.ErrAbortHandler) // net/http ends the connection
	case e != nil:
		refuseGraph(w, e)
	default:
		answerJSON(w, http.StatusOK, answer)
	}
}

// deliverCode does with a code what the rule for its number says, and returns that rule with the answer or the error.
func (wa *whatsApp) deliverCode(b *business, m *outgoing, code string) (codeRule, map[string]any, *graphError) {
	wa.mu.Lock()
	defer wa.mu.Unlock()
	digits := strings.TrimPrefix(m.To, "+")
	u := wa.findRecipient(b, digits, "")
	rule := wa.takeCodeRule(b, digits, u)
	sent := sentMessage{
		Platform: onWhatsApp, Account: b.ID, To: maskAddress("+" + digits), Type: m.Type, Template: m.Template.Name,
		Language: m.Template.Language.Code, Reference: m.Opaque, Error: rule.Error,
	}
	if rule.Error != 0 && rule.Failed == "" {
		sent.Refused = true
		wa.recordSent(sent)
		return rule, nil, newCodeError(rule.Error)
	}
	d := &outbound{business: b, id: newWAMID(), to: digits, opaque: m.Opaque, category: authentication}
	if u != nil {
		d.to = u.WhatsAppID
	} else if rule.Error == 0 {
		sent.Error = undeliverable
	}
	if sent.Error == 0 {
		sent.Billable, sent.Category = true, authentication
		wa.showMessage(u, wa.openCodeChat(b, u), d, content{text: code + " is your verification code."})
	} else {
		e := newCodeError(sent.Error)
		wa.postFailed(d, newWAError(e.Code, codeErrors[e.Code].title, e.Data["details"]), rule.failed)
	}
	wa.recordSent(sent)
	contact := d.newContactAnswer(m.To)
	switch rule.WaID {
	case "":
	case noWaID:
		delete(contact, "wa_id")
	default:
		contact["wa_id"] = rule.WaID
	}
	return rule, map[string]any{
		"messaging_product": "whatsapp", "contacts": []any{contact},
		"messages": []any{map[string]string{"id": d.id, "message_status": "accepted"}},
	}, nil
}

// openCodeChat returns the user's chat with an account, which a code begins if there is none. The lock is held.
func (wa *whatsApp) openCodeChat(b *business, u *user) *chat {
	c, f := u.findChat(onWhatsApp + ":" + b.Number)
	if f != nil {
		c = u.openChat(onWhatsApp, b.Number, b.title())
		c.business = b
	}
	return c
}

// undeliverable is Meta's code for a number without WhatsApp, and for much else.
const undeliverable = 131026

// authentication is the category of a template with a code.
const authentication = "authentication"

// codeErrors are the errors of sends ("Error codes"), with the status of the answer; 400 if zero.
var codeErrors = map[int]struct {
	title  string
	status int
}{
	4:             {title: "API Too Many Calls"},
	10:            {"Permission Denied", http.StatusForbidden},
	190:           {"Access token has expired", http.StatusUnauthorized},
	368:           {"Temporarily blocked for policies violations", http.StatusForbidden},
	80007:         {title: "Rate limit issues"},
	130429:        {title: "Rate limit hit"},
	131000:        {"Something went wrong", http.StatusInternalServerError},
	131005:        {"Access denied", http.StatusForbidden},
	131016:        {"Service unavailable", http.StatusInternalServerError},
	undeliverable: {title: "Message undeliverable"},
	131030:        {title: "Recipient phone number not in allowed list"},
	131031:        {"Business Account locked", http.StatusForbidden},
	131042:        {title: "Business eligibility payment issue"},
	131047:        {title: "Re-engagement message"},
	131048:        {title: "Spam rate limit hit"},
	131049:        {title: "This message was not delivered to maintain healthy ecosystem engagement."},
	131056:        {title: "(Business Account, Consumer Account) pair rate limit hit"},
	131057:        {"Business Account in maintenance mode", http.StatusInternalServerError},
	131062:        {title: "Business-scoped User ID (BSUID) recipients are not supported for this message."},
	132000:        {title: "Number of parameters does not match the expected number of params"},
	132001:        {"Template name does not exist in the translation", http.StatusNotFound},
	132005:        {title: "Translated text too long"},
	132007:        {title: "Character policy violated"},
	132012:        {title: "Parameter format does not match format in the created template"},
	132015:        {title: "Template is paused"},
	132016:        {title: "Template is disabled"},
	133010:        {title: "Phone number not registered"},
}

// newCodeError returns an error as answers have it. Any code will do.
func newCodeError(code int) *graphError {
	known, found := codeErrors[code]
	if !found {
		known.title = "Simulated error"
	}
	if known.status == 0 {
		known.status = http.StatusBadRequest
	}
	e := oauthError(known.status, code, "(#"+strconv.Itoa(code)+") "+known.title)
	e.Data = map[string]string{"messaging_product": onWhatsApp, "details": known.title + "."}
	return e
}
