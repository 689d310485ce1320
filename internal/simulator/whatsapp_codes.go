package simulator

import (
	"net/http"
	"strconv"
	"strings"
)

// findCodeRule returns the rule of the next code of an account to a number. The lock is held.
func (wa *whatsApp) findCodeRule(b *business, digits string, u *user) codeRule {
	rule, found := wa.takeCodeRule(onWhatsApp, digits, u)
	if !found && b.FailWith != 0 {
		return codeRule{Error: b.FailWith, Failed: "0s"}
	}
	return rule
}

// postCode takes a code in a template. It needs no open window.
func (wa *whatsApp) postCode(w http.ResponseWriter, r *http.Request, b *business, m *outgoing, code string) {
	rule, answer, e := wa.deliverCode(b, m, code)
	wa.playAnswer(r, rule)
	if e != nil {
		refuseGraph(w, e)
		return
	}
	answerJSON(w, http.StatusOK, answer)
}

// deliverCode does with a code what the rule for its number says, and returns that rule with the answer or the error.
func (wa *whatsApp) deliverCode(b *business, m *outgoing, code string) (codeRule, map[string]any, *graphError) {
	wa.mu.Lock()
	defer wa.mu.Unlock()
	digits := strings.TrimPrefix(m.To, "+")
	u := wa.findRecipient(b, digits, "")
	rule := wa.findCodeRule(b, digits, u)
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
