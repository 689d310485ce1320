package whatsapp

import (
	"fmt"
	"io"
	"log/slog"
	"regexp"

	"github.com/phoneproof/phoneproof/internal/phone"
)

// Users who have a username may hide their number from businesses. What is left of them then is a business-scoped user id
// (Meta, "Business-scoped user IDs": a country, a dot and up to 128 letters and digits; with ENT for a parent portfolio).
// Some partners of Meta put it where the number stood.
var (
	userID   = regexp.MustCompile(`^[A-Z]{2}\.(ENT\.)?[A-Za-z0-9]{1,128}$`)
	waNumber = regexp.MustCompile(`^[0-9]{5,15}$`)
)

// sender is who sent a message, by what Meta says in the message itself.
type sender struct {
	number phone.Number // zero if hidden
	userID string       // empty if Meta told none
}

// sender returns who sent the message; false if nobody can tell.
func (m *message) sender() (sender, bool) {
	var s sender
	if userID.MatchString(m.FromUserID) {
		s.userID = m.FromUserID
	}
	switch {
	case waNumber.MatchString(m.From):
		if number, err := phone.ParseWhatsApp(m.From); err == nil {
			s.number = number
		}
	case userID.MatchString(m.From):
		if s.userID != "" && s.userID != m.From {
			return sender{}, false
		}
		s.userID = m.From
	}
	return s, !s.number.IsZero() || s.userID != ""
}

// key tells senders apart within one process. It holds a number or an id, so it is hashed before it is kept.
func (s sender) key() string {
	if s.userID != "" {
		return s.userID
	}
	return s.number.Digits()
}

// recipient returns where a reply goes.
func (s sender) recipient() Recipient {
	if !s.number.IsZero() {
		return ToNumber(s.number)
	}
	return ToUserID(s.userID)
}

// Recipient is whom a message of ours goes to. It prints as a placeholder.
type Recipient struct {
	// A pointer to a pointer, which no verb of package fmt follows.
	hidden **address
}

type address struct {
	number string
	userID string
}

// ToNumber returns the user of a number.
func ToNumber(n phone.Number) Recipient {
	a := &address{number: n.Digits()}
	return Recipient{&a}
}

// ToUserID returns the user of a business-scoped user id.
func ToUserID(id string) Recipient {
	a := &address{userID: id}
	return Recipient{&a}
}

func (r Recipient) address() address {
	if r.hidden == nil {
		return address{}
	}
	return **r.hidden
}

const hiddenRecipient = "[recipient]"

// String hides whom it is.
func (r Recipient) String() string { return hiddenRecipient }

// Format hides whom it is from every verb.
func (r Recipient) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hiddenRecipient) }

// LogValue hides whom it is from structured logs.
func (r Recipient) LogValue() slog.Value { return slog.StringValue(hiddenRecipient) }
