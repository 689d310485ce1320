package simulator

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// outgoing is a message of the business, as far as it is read.
type outgoing struct {
	Product   string `json:"messaging_product"`
	To        string `json:"to"`
	Recipient string `json:"recipient"`
	Type      string `json:"type"`
	// Opaque comes back in the statuses.
	Opaque string `json:"biz_opaque_callback_data"`
	Text   struct {
		Body       string `json:"body"`
		PreviewURL bool   `json:"preview_url"`
	} `json:"text"`
	Template    outgoingTemplate `json:"template"`
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

// replyButton is a button below a message, which answers it, or one of a bot's keyboard, which has no id.
type replyButton struct {
	ID    string `json:"id,omitempty"`
	Title string `json:"title"`
}

const requestContactInfo = "request_contact_info"

// content is what a message shows, and what it asks of the user: their number, or a tap on one of its buttons.
type content struct {
	text    string
	contact bool
	buttons []replyButton
}

// parseContent returns what a message shows.
func (m *outgoing) parseContent() (shown content, e *graphError) {
	switch {
	case m.Product != onWhatsApp:
		return shown, parameterError("The parameter messaging_product is required.")
	case (m.To == "") == (m.Recipient == ""):
		return shown, parameterError("Exactly one of the parameters to and recipient is required.")
	case len(m.Opaque) > maxOpaqueBytes:
		return shown, parameterError("The parameter biz_opaque_callback_data must have at most 512 bytes.")
	case m.Type == "template":
		shown.text, e = m.readCode()
		return shown, e
	case m.Type == "text":
		shown.text = m.Text.Body
	case m.Type == "interactive" && m.Interactive.Type == requestContactInfo && m.Interactive.Action.Name == requestContactInfo:
		shown.text, shown.contact = m.Interactive.Body.Text, true
	case m.Type == "interactive" && m.Interactive.Type == "button":
		if shown.buttons, e = m.parseButtons(); e != nil {
			return shown, e
		}
		shown.text = m.Interactive.Body.Text
	default:
		return shown, parameterError("This message type is not simulated: text, template and interactive request_contact_info and button are.")
	}
	if n := len([]rune(shown.text)); n == 0 || n > maxTextRunes || m.Type == "interactive" && n > 1024 {
		return shown, parameterError("The length of the body must be 1 to 4096 characters, and to 1024 if it is interactive.")
	}
	return shown, nil
}

// parseButtons returns the reply buttons of a message (Cloud API, "Interactive reply buttons").
func (m *outgoing) parseButtons() ([]replyButton, *graphError) {
	var all []replyButton
	for _, b := range m.Interactive.Action.Buttons {
		id, title := len([]rune(b.Reply.ID)), len([]rune(b.Reply.Title))
		if b.Type != "reply" || id == 0 || id > 256 || title == 0 || title > 20 {
			return nil, parameterError("A button is a reply with an id of 1 to 256 characters and a title of 1 to 20.")
		}
		if slices.ContainsFunc(all, func(a replyButton) bool { return a.ID == b.Reply.ID || a.Title == b.Reply.Title }) {
			return nil, parameterError("The ids and the titles of the buttons must differ.")
		}
		all = append(all, b.Reply)
	}
	if len(all) == 0 || len(all) > 3 {
		return nil, parameterError("There must be 1 to 3 buttons.")
	}
	return all, nil
}

// postMessage takes a message. Whether it can be delivered is reported by a status later.
func (wa *whatsApp) postMessage(w http.ResponseWriter, r *http.Request, b *business) {
	var m outgoing
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequestBytes)).Decode(&m); err != nil {
		refuseGraph(w, oauthError(http.StatusBadRequest, 100, "(#100) The body is not valid JSON."))
		return
	}
	shown, e := m.parseContent()
	if e != nil {
		refuseGraph(w, e)
		return
	}
	if m.Type == "template" {
		wa.postCode(w, r, b, &m, shown.text)
		return
	}
	wa.mu.Lock()
	defer wa.mu.Unlock()
	given := m.To
	m.To = strings.TrimPrefix(given, "+")
	u := wa.findRecipient(b, m.To, m.Recipient)
	c, failed := wa.findOpenChat(b, u)
	wa.recordSent(newSentMessage(b, &m, shown, failed))
	d := &outbound{business: b, id: newWAMID(), to: m.To, recipient: m.Recipient, opaque: m.Opaque, category: freeForm}
	if u != nil && m.To != "" {
		d.to = u.WhatsAppID
	}
	if failed != nil {
		wa.postFailed(d, failed, 0)
	} else {
		wa.showMessage(u, c, d, shown)
	}
	answerJSON(w, http.StatusOK, map[string]any{
		"messaging_product": "whatsapp", "contacts": []any{d.newContactAnswer(given)}, "messages": []any{map[string]string{"id": d.id}},
	})
}

// findRecipient returns the user that a message is for; nil if there is none. The lock is held.
func (wa *whatsApp) findRecipient(b *business, digits, userID string) *user {
	for _, u := range wa.phones.users {
		if digits != "" && (u.WhatsAppID == digits || u.Phone[1:] == digits) || userID != "" && u.businessScopedID(b) == userID {
			return u
		}
	}
	return nil
}

// findOpenChat returns the chat in which a message is shown, or why it cannot be delivered: a business may write within 24 hours
// after the user wrote to it. The lock is held.
func (wa *whatsApp) findOpenChat(b *business, u *user) (*chat, *waError) {
	if b.FailWith != 0 {
		return nil, newWAError(b.FailWith, "Message not delivered", "The account fails every message with this code.")
	}
	if u == nil {
		return nil, newWAError(undeliverable, "Message undeliverable", "Message Undeliverable.")
	}
	c, f := u.findChat(onWhatsApp + ":" + b.Number)
	if f == nil && !c.wroteAt.IsZero() && wa.clock.Since(c.wroteAt) <= serviceWindow {
		return c, nil
	}
	return nil, newWAError(131047, "Re-engagement message",
		"Message failed to send because more than 24 hours have passed since the customer last replied to this number.")
}

// showMessage shows a message to its user, and has the statuses of it posted. The lock is held.
func (wa *whatsApp) showMessage(u *user, c *chat, d *outbound, shown content) {
	c.addLine(&line{ID: d.id, From: fromBusiness, At: wa.clock.Now().UTC(), Text: shown.text})
	if shown.contact {
		c.AsksForContact, c.Button = true, "Share phone number"
	}
	if shown.buttons != nil {
		c.Replies, c.questionID = shown.buttons, d.id
	}
	wa.publish(event{Type: "reply", User: u.ID, Chat: c.ID, Platform: onWhatsApp})
	wa.postStatus(d, u, "sent")
	wa.postStatus(d, u, "delivered")
	c.unread = appendBounded(c.unread, d, maxLines)
}

// newSentMessage returns what the ledger keeps of a message.
func newSentMessage(b *business, m *outgoing, shown content, failed *waError) sentMessage {
	s := sentMessage{
		Platform: onWhatsApp, Account: b.ID, Recipient: maskAddress(m.Recipient), Type: m.Type, Category: freeForm,
		Billable: failed == nil,
	}
	if m.To != "" {
		s.To = maskAddress("+" + m.To)
	}
	s.LinkPreview = m.Text.PreviewURL && webLink.MatchString(shown.text)
	for _, button := range shown.buttons {
		s.Buttons = append(s.Buttons, button.Title)
	}
	if failed != nil {
		s.Category, s.Error = "", failed.Code
	}
	return s
}
