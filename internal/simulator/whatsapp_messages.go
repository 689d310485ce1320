package simulator

import (
	"encoding/json"
	"net/http"
	"strings"
)

// outgoing is a message of the business, as far as it is read.
type outgoing struct {
	Product   string `json:"messaging_product"`
	To        string `json:"to"`
	Recipient string `json:"recipient"`
	Type      string `json:"type"`
	Text      struct {
		Body string `json:"body"`
	} `json:"text"`
	Interactive struct {
		Type string `json:"type"`
		Body struct {
			Text string `json:"text"`
		} `json:"body"`
		Action struct {
			Name    string `json:"name"`
			Buttons []struct {
				Type  string      `json:"type"`
				Reply replyButton `json:"reply"`
			} `json:"buttons"`
		} `json:"action"`
	} `json:"interactive"`
}

// replyButton is a button below a message, which answers it.
type replyButton struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

const requestContactInfo = "request_contact_info"

// question is what a message asks of the user: their number, or a tap on one of its buttons.
type question struct {
	contact bool
	buttons []replyButton
}

// parseContent returns the text of a message and what it asks.
func (m *outgoing) parseContent() (text string, asks question, e *graphError) {
	switch {
	case m.Product != onWhatsApp:
		return "", asks, parameterError("The parameter messaging_product is required.")
	case (m.To == "") == (m.Recipient == ""):
		return "", asks, parameterError("Exactly one of the parameters to and recipient is required.")
	case m.Type == "text":
		text = m.Text.Body
	case m.Type == "interactive" && m.Interactive.Type == requestContactInfo && m.Interactive.Action.Name == requestContactInfo:
		text, asks.contact = m.Interactive.Body.Text, true
	case m.Type == "interactive" && m.Interactive.Type == "button":
		if asks.buttons, e = m.parseButtons(); e != nil {
			return "", asks, e
		}
		text = m.Interactive.Body.Text
	default:
		return "", asks, parameterError("This message type is not simulated: text and interactive request_contact_info and button are.")
	}
	if n := len([]rune(text)); n == 0 || n > maxTextRunes || m.Type == "interactive" && n > 1024 {
		return "", asks, parameterError("The length of the body must be 1 to 4096 characters, and to 1024 if it is interactive.")
	}
	return text, asks, nil
}

// parseButtons returns the reply buttons of a message (Cloud API, "Interactive reply buttons").
func (m *outgoing) parseButtons() ([]replyButton, *graphError) {
	var all []replyButton
	for _, b := range m.Interactive.Action.Buttons {
		id, title := len([]rune(b.Reply.ID)), len([]rune(b.Reply.Title))
		if b.Type != "reply" || id == 0 || id > 256 || title == 0 || title > 20 {
			return nil, parameterError("A button is a reply with an id of 1 to 256 characters and a title of 1 to 20.")
		}
		all = append(all, b.Reply)
	}
	if len(all) == 0 || len(all) > 3 {
		return nil, parameterError("There must be 1 to 3 buttons.")
	}
	return all, nil
}

// postMessage takes a message. As with Meta, whether it could be delivered is reported later, by a status.
func (wa *whatsApp) postMessage(w http.ResponseWriter, r *http.Request, b *business) {
	var m outgoing
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequestBytes)).Decode(&m); err != nil {
		refuseGraph(w, oauthError(http.StatusBadRequest, 100, "(#100) The body is not valid JSON."))
		return
	}
	text, asks, e := m.parseContent()
	if e != nil {
		refuseGraph(w, e)
		return
	}
	wa.mu.Lock()
	defer wa.mu.Unlock()
	id := newWAMID()
	contact := map[string]string{"input": m.To + m.Recipient}
	u := wa.findRecipient(b, m.To, m.Recipient)
	switch {
	case m.Recipient != "":
		contact["user_id"] = m.Recipient
	case u != nil:
		contact["wa_id"] = u.WhatsAppID
	default:
		contact["wa_id"] = strings.TrimPrefix(m.To, "+")
	}
	wa.deliverToPhone(b, u, &line{ID: id, From: fromBusiness, At: wa.clock.Now().UTC(), Text: text}, asks, &m)
	answerJSON(w, http.StatusOK, map[string]any{
		"messaging_product": "whatsapp", "contacts": []any{contact}, "messages": []any{map[string]string{"id": id}},
	})
}

// findRecipient returns the user that a message is for; nil if there is none. The lock is held.
func (wa *whatsApp) findRecipient(b *business, number, userID string) *user {
	number = strings.TrimPrefix(number, "+")
	for _, u := range wa.phones.users {
		if number != "" && (u.WhatsAppID == number || u.Phone[1:] == number) || userID != "" && u.businessScopedID(b) == userID {
			return u
		}
	}
	return nil
}

// deliverToPhone shows a message to its user, and has the statuses of it posted. The lock is held.
func (wa *whatsApp) deliverToPhone(b *business, u *user, l *line, asks question, m *outgoing) {
	var c *chat
	if u != nil {
		c, _ = u.findChat(onWhatsApp + ":" + b.Number)
	}
	switch {
	case u == nil:
		wa.postStatus(b, l.ID, m, "failed", &waError{131026, "Message undeliverable"})
		return
	case c == nil || wa.clock.Since(c.wroteAt) > serviceWindow:
		wa.postStatus(b, l.ID, m, "failed", &waError{131047, "Re-engagement message"})
		return
	}
	c.addLine(l)
	if asks.contact {
		c.AsksForContact, c.Button = true, "Share phone number"
	}
	if asks.buttons != nil {
		c.Replies, c.promptID = asks.buttons, l.ID
	}
	wa.publish(event{Type: "reply", User: u.ID, Chat: c.ID, Platform: onWhatsApp})
	wa.postStatus(b, l.ID, m, "sent", nil)
	wa.postStatus(b, l.ID, m, "delivered", nil)
}

// postStatus has a status of a message posted. The lock is held.
func (wa *whatsApp) postStatus(b *business, id string, m *outgoing, status string, failed *waError) {
	st := waStatus{ID: id, Status: status, Timestamp: unixTime(wa.clock.Now()), RecipientID: m.To, RecipientBy: m.Recipient}
	if failed != nil {
		st.Errors = []waError{*failed}
	}
	v := b.newValue()
	v.Statuses = []waStatus{st}
	wa.queueWebhook(b, v, nil, nil)
}
