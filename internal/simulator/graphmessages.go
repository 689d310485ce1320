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

// content returns the text of a message and what it asks.
func (m *outgoing) content() (text string, asks question, e *graphError) {
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
		if asks.buttons, e = m.buttons(); e != nil {
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

// buttons returns the reply buttons of a message (Cloud API, "Interactive reply buttons").
func (m *outgoing) buttons() ([]replyButton, *graphError) {
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

// postMessage takes a message. As with Meta, whether it could be delivered is told later, by a status.
func (s *Simulator) postMessage(w http.ResponseWriter, r *http.Request, b *business) {
	var m outgoing
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequestBytes)).Decode(&m); err != nil {
		refuseGraph(w, oauthError(http.StatusBadRequest, 100, "(#100) The body is not valid JSON."))
		return
	}
	text, asks, e := m.content()
	if e != nil {
		refuseGraph(w, e)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := newWAMID()
	contact := map[string]string{"input": m.To + m.Recipient}
	u := s.recipient(b, m.To, m.Recipient)
	switch {
	case m.Recipient != "":
		contact["user_id"] = m.Recipient
	case u != nil:
		contact["wa_id"] = u.WhatsAppID
	default:
		contact["wa_id"] = strings.TrimPrefix(m.To, "+")
	}
	s.deliverToPhone(b, u, &line{ID: id, From: fromBusiness, At: s.clock.Now().UTC(), Text: text}, asks, &m)
	answer(w, http.StatusOK, map[string]any{
		"messaging_product": "whatsapp", "contacts": []any{contact}, "messages": []any{map[string]string{"id": id}},
	})
}

// recipient returns whom a message is for; nil if that is nobody. s.mu is held.
func (s *Simulator) recipient(b *business, number, userID string) *user {
	number = strings.TrimPrefix(number, "+")
	for _, u := range s.users {
		if number != "" && (u.WhatsAppID == number || u.Phone[1:] == number) || userID != "" && u.businessScopedID(b) == userID {
			return u
		}
	}
	return nil
}

// deliverToPhone shows a message to its user, and has the statuses of it posted. s.mu is held.
func (s *Simulator) deliverToPhone(b *business, u *user, l *line, asks question, m *outgoing) {
	var c *chat
	if u != nil {
		c, _ = u.findChat(onWhatsApp + ":" + b.Number)
	}
	switch {
	case u == nil:
		s.postStatus(b, l.ID, m, "failed", &waError{131026, "Message undeliverable"})
		return
	case c == nil || s.clock.Since(c.wroteAt) > serviceWindow:
		s.postStatus(b, l.ID, m, "failed", &waError{131047, "Re-engagement message"})
		return
	}
	c.add(l)
	if asks.contact {
		c.AsksForContact, c.Button = true, "Share phone number"
	}
	if asks.buttons != nil {
		c.Replies, c.promptID = asks.buttons, l.ID
	}
	s.tell(event{Type: "reply", User: u.ID, Chat: c.ID, Platform: onWhatsApp})
	s.postStatus(b, l.ID, m, "sent", nil)
	s.postStatus(b, l.ID, m, "delivered", nil)
}

// postStatus has a status of a message posted. s.mu is held.
func (s *Simulator) postStatus(b *business, id string, m *outgoing, status string, failed *waError) {
	st := waStatus{ID: id, Status: status, Timestamp: unixTime(s.clock.Now()), RecipientID: m.To, RecipientBy: m.Recipient}
	if failed != nil {
		st.Errors = []waError{*failed}
	}
	v := b.value()
	v.Statuses = []waStatus{st}
	s.dispatch(b, v, nil, nil)
}
