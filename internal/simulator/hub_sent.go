package simulator

import (
	"strings"
	"time"
)

// ledger is what accounts sent to users, the newest last.
type ledger struct {
	Messages []sentMessage `json:"messages"`
	// Total and Billed count all of them, also those that are not remembered any more.
	Total  int `json:"total"`
	Billed int `json:"billed"`
}

// sentMessage is a message that a platform took from an account, without its text.
type sentMessage struct {
	Seq      int       `json:"seq"`
	At       time.Time `json:"at"`
	Platform string    `json:"platform"`
	Account  string    `json:"account"`
	// To is the number, Recipient the user id or that of Telegram's chat; both are masked.
	To        string `json:"to,omitempty"`
	Recipient string `json:"recipient,omitempty"`
	// Type is that of the request: text, interactive, template, or code for one through Telegram's Gateway.
	Type string `json:"type"`
	// Template, Language and Reference are those of a template. The reference is biz_opaque_callback_data, or the payload of a code.
	Template  string `json:"template,omitempty"`
	Language  string `json:"language,omitempty"`
	Reference string `json:"reference,omitempty"`
	// Billable and Category are what the status callbacks say of its price.
	Billable bool   `json:"billable"`
	Category string `json:"category,omitempty"`
	// Buttons are their titles.
	Buttons []string `json:"buttons,omitempty"`
	// LinkPreview is true if the platform fetches the first link of the text.
	LinkPreview bool `json:"linkPreview,omitempty"`
	// Error is the code of the platform if it could not be delivered.
	Error int `json:"error,omitempty"`
	// GatewayError is the word of Telegram's Gateway for a code that it did not take.
	GatewayError string `json:"gatewayError,omitempty"`
	// Refused is true for a template, or a code, that the platform refused at once.
	Refused bool `json:"refused,omitempty"`
}

// recordSent notes a message. The lock is held.
func (h *hub) recordSent(m sentMessage) {
	h.sent.Total++
	if m.Billable {
		h.sent.Billed++
	}
	m.Seq, m.At = h.sent.Total, h.clock.Now().UTC()
	h.sent.Messages = appendBounded(h.sent.Messages, m, maxSent)
}

// copyAll returns what may be answered after the lock was released.
func (l *ledger) copyAll() ledger {
	return ledger{Messages: append([]sentMessage{}, l.Messages...), Total: l.Total, Billed: l.Billed}
}

// maskAddress returns a number or a user id without most of it: three characters before and two after what is hidden.
func maskAddress(address string) string {
	const before, after = 3, 2
	if len(address) < 2*(before+after) {
		return strings.Repeat("*", len(address))
	}
	return address[:before] + strings.Repeat("*", len(address)-before-after) + address[len(address)-after:]
}
