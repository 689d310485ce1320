package whatsapp

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/messenger"
)

// The shapes below hold what we use, no more. They are those of Meta's webhook reference (object, entry, changes, value;
// business-messaging/whatsapp/webhooks/reference/messages), and of the fixtures that testdata/README.md names.

// webhook is the whole of one, to be read at once. Nearly all are so; decoding the rest element by element reads each byte
// a dozen times.
type webhook struct {
	Object string `json:"object"`
	Entry  []struct {
		Changes []struct {
			Field string `json:"field"`
			Value *struct {
				Metadata metadata  `json:"metadata"`
				Messages []message `json:"messages"`
				Statuses []status  `json:"statuses"`
			} `json:"value"`
		} `json:"changes"`
	} `json:"entry"`
}

// The same in parts, for webhooks with something odd in them: lists are decoded element by element, so that what is odd in
// one spoils no other.

type envelope struct {
	Object string            `json:"object"`
	Entry  []json.RawMessage `json:"entry"`
}

type entry struct {
	Changes []json.RawMessage `json:"changes"`
}

type change struct {
	Field string          `json:"field"`
	Value json.RawMessage `json:"value"`
}

// value is what field "messages" carries. Its contacts are left out: they hold names, and the message itself has
// wa_id and user_id.
type value struct {
	Metadata metadata          `json:"metadata"`
	Messages []json.RawMessage `json:"messages"`
	Statuses []json.RawMessage `json:"statuses"`
}

// metadata is whom a change is for.
type metadata struct {
	DisplayPhoneNumber string `json:"display_phone_number"`
	PhoneNumberID      string `json:"phone_number_id"`
}

// message is what a user sent. What belongs to its type is decoded for that type only.
type message struct {
	From       string          `json:"from"`
	FromUserID string          `json:"from_user_id"`
	ID         string          `json:"id"`
	Timestamp  timestamp       `json:"timestamp"`
	Type       string          `json:"type"`
	GroupID    json.RawMessage `json:"group_id"`
	Origin     string          `json:"origin"`
	Context    struct {
		Forwarded           flag            `json:"forwarded"`
		FrequentlyForwarded flag            `json:"frequently_forwarded"`
		GroupID             json.RawMessage `json:"group_id"`
	} `json:"context"`

	Text        json.RawMessage `json:"text"`
	Button      json.RawMessage `json:"button"`
	Interactive json.RawMessage `json:"interactive"`
	Contacts    json.RawMessage `json:"contacts"`
	Image       json.RawMessage `json:"image"`
	Video       json.RawMessage `json:"video"`
	Document    json.RawMessage `json:"document"`
	Edit        json.RawMessage `json:"edit"`

	// businessNumber is the display_phone_number that it was sent to, digits only.
	businessNumber string
}

// timestamp is a time in whole seconds since 1970, as a string (Meta's examples) or a number (Meta's tables); zero if it
// is anything else.
type timestamp struct{ time.Time }

// UnmarshalJSON never fails: a message without a time is refused by itself.
func (t *timestamp) UnmarshalJSON(data []byte) error {
	digits := strings.Trim(string(data), `"`)
	if len(digits) < 9 || len(digits) > 11 || strings.Trim(digits, "0123456789") != "" {
		return nil
	}
	seconds, err := strconv.ParseInt(digits, 10, 64)
	if err == nil {
		t.Time = time.Unix(seconds, 0).UTC()
	}
	return nil
}

// flag is true unless the field is false or null, so that a change of form cannot pass what it guards against.
type flag bool

// UnmarshalJSON never fails.
func (f *flag) UnmarshalJSON(data []byte) error {
	text := string(data)
	*f = text != "false" && text != "null"
	return nil
}

// isPresent reports whether a field is there with a value.
func isPresent(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// counter counts what does not count as a message, by what makes it irrelevant.
type counter func(messenger.Outcome, int)

// inbound is what a webhook brings for the business number, in order.
type inbound struct {
	messages []message
	statuses []status
}

// addInbound appends what one change brings.
func (in *inbound) addInbound(more inbound) {
	in.messages = append(in.messages, more.messages...)
	in.statuses = append(in.statuses, more.statuses...)
}

// decodeWebhook returns what a webhook brings for the business number.
func decodeWebhook(body []byte, phoneNumberID string, count counter) inbound {
	var hook webhook
	if json.Unmarshal(body, &hook) != nil {
		return decodeParts(body, phoneNumberID, count)
	}
	if !count.acceptsObject(hook.Object) {
		return inbound{}
	}
	var all inbound
	for _, e := range hook.Entry {
		for _, c := range e.Changes {
			switch v := c.Value; {
			case !count.acceptsField(c.Field):
			case v == nil:
				count(messenger.OutcomeMalformed, 1)
			case count.acceptsAddressee(v.Metadata, phoneNumberID, len(v.Messages)):
				count(messenger.OutcomeStatus, len(v.Statuses))
				all.addInbound(inbound{sentTo(v.Metadata, v.Messages), v.Statuses})
			}
		}
	}
	return all
}

// acceptsObject reports whether a webhook is about WhatsApp.
func (count counter) acceptsObject(of string) bool {
	if of != "whatsapp_business_account" {
		count(messenger.OutcomeOtherObject, 1)
		return false
	}
	return true
}

// acceptsField reports whether a change is about messages.
func (count counter) acceptsField(name string) bool {
	switch name {
	case "messages":
		return true
	case "message_echoes", "smb_message_echoes": // what the business wrote, from another of its clients
		count(messenger.OutcomeEcho, 1)
	default:
		count(messenger.OutcomeOtherUpdate, 1)
	}
	return false
}

// acceptsAddressee reports whether messages are for the project's number. One app has one callback for all of its numbers, and other
// projects or other systems may own those.
func (count counter) acceptsAddressee(of metadata, phoneNumberID string, messages int) bool {
	if of.PhoneNumberID != phoneNumberID || phoneNumberID == "" {
		count(messenger.OutcomeOtherNumber, max(1, messages))
		return false
	}
	return true
}

// sentTo notes in messages where they were sent to.
func sentTo(of metadata, messages []message) []message {
	business := onlyDigits(of.DisplayPhoneNumber)
	for i := range messages {
		messages[i].businessNumber = business
	}
	return messages
}

// decodeParts is decodeWebhook for what cannot be read at once.
func decodeParts(body []byte, phoneNumberID string, count counter) inbound {
	var e envelope
	if json.Unmarshal(body, &e) != nil {
		count(messenger.OutcomeMalformed, 1)
		return inbound{}
	}
	if !count.acceptsObject(e.Object) {
		return inbound{}
	}
	var all inbound
	for _, rawEntry := range e.Entry {
		var en entry
		if json.Unmarshal(rawEntry, &en) != nil {
			count(messenger.OutcomeMalformed, 1)
			continue
		}
		for _, rawChange := range en.Changes {
			all.addInbound(decodeChange(rawChange, phoneNumberID, count))
		}
	}
	return all
}

func decodeChange(raw json.RawMessage, phoneNumberID string, count counter) inbound {
	var c change
	if json.Unmarshal(raw, &c) != nil {
		count(messenger.OutcomeMalformed, 1)
		return inbound{}
	}
	if !count.acceptsField(c.Field) {
		return inbound{}
	}
	var v value
	if !isPresent(c.Value) || json.Unmarshal(c.Value, &v) != nil {
		count(messenger.OutcomeMalformed, 1)
		return inbound{}
	}
	if !count.acceptsAddressee(v.Metadata, phoneNumberID, len(v.Messages)) {
		return inbound{}
	}
	count(messenger.OutcomeStatus, len(v.Statuses))
	return inbound{sentTo(v.Metadata, decodeMessages(v.Messages, count)), decodeStatuses(v.Statuses)}
}

func decodeMessages(all []json.RawMessage, count counter) []message {
	messages := make([]message, 0, len(all))
	for _, raw := range all {
		var m message
		if json.Unmarshal(raw, &m) != nil {
			count(messenger.OutcomeMalformed, 1)
			continue
		}
		messages = append(messages, m)
	}
	return messages
}

// decodeStatuses leaves out what is no status. It was counted with the others.
func decodeStatuses(all []json.RawMessage) []status {
	statuses := make([]status, 0, len(all))
	for _, raw := range all {
		var s status
		if json.Unmarshal(raw, &s) == nil {
			statuses = append(statuses, s)
		}
	}
	return statuses
}

// onlyDigits returns the digits of a number that is written for people, such as +250 788 123 200.
func onlyDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, s)
}
