package simulator

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// The shapes of Meta's webhooks (business-messaging/whatsapp/webhooks/reference/messages). With each message comes the
// sender's business-scoped user id; the number comes unless the user hides it.
type (
	waEnvelope struct {
		Object string    `json:"object"`
		Entry  []waEntry `json:"entry"`
	}
	waEntry struct {
		ID      string     `json:"id"`
		Changes []waChange `json:"changes"`
	}
	waChange struct {
		Value waValue `json:"value"`
		Field string  `json:"field"`
	}
	waValue struct {
		Product  string      `json:"messaging_product"`
		Metadata waMetadata  `json:"metadata"`
		Contacts []waContact `json:"contacts,omitempty"`
		Messages []waMessage `json:"messages,omitempty"`
		Statuses []waStatus  `json:"statuses,omitempty"`

		account string // the id of the business account
	}
	waMetadata struct {
		Number string `json:"display_phone_number"`
		ID     string `json:"phone_number_id"`
	}
	waContact struct {
		Profile waProfile `json:"profile"`
		WaID    string    `json:"wa_id,omitempty"`
		UserID  string    `json:"user_id,omitempty"`
	}
	waProfile struct {
		Name     string `json:"name"`
		Username string `json:"username,omitempty"`
	}
	waMessage struct {
		From       string     `json:"from,omitempty"`
		FromUserID string     `json:"from_user_id,omitempty"`
		ID         string     `json:"id"`
		Timestamp  string     `json:"timestamp"`
		Context    *waContext `json:"context,omitempty"`
		Type       string     `json:"type"`
		Text       *waText    `json:"text,omitempty"`
		Contacts   []waCard   `json:"contacts,omitempty"`

		Interactive *waInteractive `json:"interactive,omitempty"`
	}
	waInteractive struct {
		Type  string       `json:"type"`
		Reply *replyButton `json:"button_reply,omitempty"`
	}
	waContext struct {
		Forwarded bool   `json:"forwarded,omitempty"`
		From      string `json:"from,omitempty"`
		ID        string `json:"id,omitempty"`
	}
	waText struct {
		Body string `json:"body"`
	}
	waCard struct {
		Name   waCardName `json:"name"`
		Phones []waPhone  `json:"phones"`
		Origin string     `json:"origin,omitempty"`
	}
	waCardName struct {
		Formatted string `json:"formatted_name"`
		First     string `json:"first_name"`
		Last      string `json:"last_name,omitempty"`
	}
	waPhone struct {
		Phone string `json:"phone"`
		WaID  string `json:"wa_id,omitempty"`
		Type  string `json:"type"`
	}
	waStatus struct {
		ID              string     `json:"id"`
		Status          string     `json:"status"`
		Timestamp       string     `json:"timestamp"`
		RecipientID     string     `json:"recipient_id,omitempty"`
		RecipientUserID string     `json:"recipient_user_id,omitempty"`
		Opaque          string     `json:"biz_opaque_callback_data,omitempty"`
		Pricing         *waPricing `json:"pricing,omitempty"`
		Errors          []waError  `json:"errors,omitempty"`
	}
	waPricing struct {
		Billable bool   `json:"billable"`
		Model    string `json:"pricing_model"`
		Type     string `json:"type"`
		Category string `json:"category"`
	}
	waError struct {
		Code    int         `json:"code"`
		Title   string      `json:"title"`
		Message string      `json:"message"`
		Data    waErrorData `json:"error_data"`
		Href    string      `json:"href"`
	}
	waErrorData struct {
		Details string `json:"details"`
	}
)

func (b *business) newValue() waValue {
	return waValue{Product: onWhatsApp, Metadata: waMetadata{b.Number, b.ID}, account: b.WABA}
}

func newEnvelope(v waValue) waEnvelope {
	return waEnvelope{Object: "whatsapp_business_account", Entry: []waEntry{{v.account, []waChange{{v, "messages"}}}}}
}

// newContact returns what a business sees of a user: the number unless it is hidden.
func (u *user) newContact(b *business) waContact {
	contact := waContact{Profile: waProfile{Name: u.Name}, UserID: u.businessScopedID(b)}
	if u.Username != "" {
		contact.Profile.Username = "@" + u.Username
	}
	if !u.HidesNumber {
		contact.WaID = u.WhatsAppID
	}
	return contact
}

// newSenderMessage returns what a business sees of a user who writes.
func (u *user) newSenderMessage(b *business, at time.Time) (waContact, waMessage) {
	contact := u.newContact(b)
	return contact, waMessage{From: contact.WaID, FromUserID: contact.UserID, ID: newWAMID(), Timestamp: unixTime(at)}
}

// newTextValue returns the webhook of a text.
func (u *user) newTextValue(b *business, text string, at time.Time) waValue {
	contact, m := u.newSenderMessage(b, at)
	m.Type, m.Text = "text", &waText{text}
	v := b.newValue()
	v.Contacts, v.Messages = []waContact{contact}, []waMessage{m}
	return v
}

// newTapValue returns the webhook of a tap on a button of a message of the business.
func (u *user) newTapValue(b *business, button replyButton, promptID string, at time.Time) waValue {
	v := u.newTextValue(b, "", at)
	m := &v.Messages[0]
	m.Type, m.Text = "interactive", nil
	m.Context = &waContext{From: b.Number, ID: promptID}
	m.Interactive = &waInteractive{Type: "button_reply", Reply: &button}
	return v
}

// newCardValue returns the webhook of the user's own contact, as the answer to a request for it.
func (u *user) newCardValue(b *business, at time.Time) waValue {
	v := u.newTextValue(b, "", at)
	m := &v.Messages[0]
	m.Type, m.Text = "contacts", nil
	m.Contacts = []waCard{{
		Name:   waCardName{u.Name, u.firstName(), u.lastName()},
		Phones: []waPhone{{u.Phone, u.WhatsAppID, "MOBILE"}},
		Origin: "contact_request",
	}}
	return v
}

func unixTime(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

func newWAMID() string {
	var id [36]byte
	_, _ = rand.Read(id[:]) // never fails (crypto/rand)
	return "wamid." + base64.StdEncoding.EncodeToString(id[:])
}

// encodeEscaped returns JSON as Meta sends it: everything beyond ASCII as \u escapes, and slashes escaped.
func encodeEscaped(v any) []byte {
	var out bytes.Buffer
	for _, r := range string(encodePlain(v)) {
		switch {
		case r == '/': // JSON has slashes in strings only
			out.WriteString(`\/`)
		case r < utf8.RuneSelf:
			out.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.Bytes()
}

// encodePlain returns JSON as most encoders write it.
func encodePlain(v any) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v) //nolint:errchkjson // of our own types, which all can be encoded
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// metaSignature is the header of Meta's signature.
const metaSignature = "X-Hub-Signature-256"

// metaMAC returns the value of metaSignature.
func metaMAC(secret, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}
