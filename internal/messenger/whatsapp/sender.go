package whatsapp

import (
	"regexp"
	"time"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/redact"
)

// Users who have a username may hide their number from businesses. What is left of them then is a business-scoped user id
// (Meta, "Business-scoped user IDs": a country, a dot and up to 128 letters and digits; with ENT for a parent portfolio).
// Some partners of Meta put it where the number stood.
var (
	userID   = regexp.MustCompile(`^[A-Z]{2}\.(ENT\.)?[A-Za-z0-9]{1,128}$`)
	waNumber = regexp.MustCompile(`^[0-9]{5,15}$`)
)

// sender is who sent a message, as Meta has it in the message itself.
type sender struct {
	number phone.Number // zero if hidden
	userID string       // empty if Meta reports none
	sentAt time.Time    // when the message was sent
}

// readSender returns the sender of the message; false if it is not known.
func (m *message) readSender() (sender, bool) {
	s := sender{sentAt: m.Timestamp.Time}
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

// key identifies the sender within one process. It holds a number or an id, so it is hashed before it is kept.
func (s sender) key() string {
	if s.userID != "" {
		return s.userID
	}
	return s.number.Digits()
}

// keys returns all that identifies the sender, key among them.
func (s sender) keys() []string {
	var all []string
	if s.userID != "" {
		all = append(all, s.userID)
	}
	if !s.number.IsZero() {
		all = append(all, s.number.Digits())
	}
	return all
}

// senderKey returns the key of the sender; empty if it is not known.
func (m *message) senderKey() string {
	from, _ := m.readSender()
	return from.key()
}

// recipient returns where a reply goes.
func (s sender) recipient() Recipient {
	if !s.number.IsZero() {
		return ToNumber(s.number)
	}
	return ToUserID(s.userID)
}

// Recipient is the user whom a message goes to. It prints as a placeholder.
type Recipient struct{ redact.Value[address] }

type address struct {
	number string
	userID string
}

// ToNumber returns the user of a number.
func ToNumber(n phone.Number) Recipient {
	return Recipient{redact.New(address{number: n.Digits()})}
}

// ToUserID returns the user of a business-scoped user id.
func ToUserID(id string) Recipient {
	return Recipient{redact.New(address{userID: id})}
}
