package telegram

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"

	kjson "sigs.k8s.io/json"
)

// envelope is an Update. Whatever else it may hold (edited_message, channel_post, business_message, guest_message,
// callback_query, ...) is not a new message of a user to the bot, and is not looked at.
type envelope struct {
	UpdateID json.RawMessage `json:"update_id"`
	Message  json.RawMessage `json:"message"`
}

// message is a Message, as far as it decides anything.
type message struct {
	From *struct {
		ID    int64 `json:"id"`
		IsBot bool  `json:"is_bot"`
	} `json:"from"`
	Chat struct {
		ID   int64  `json:"id"`
		Type string `json:"type"`
	} `json:"chat"`
	Date    int64    `json:"date"`
	Text    string   `json:"text"`
	Contact *contact `json:"contact"`
	// ReplyTo is the message that this one answers: for a contact that was shared by the button, the one with the button.
	ReplyTo *struct {
		Date int64 `json:"date"`
	} `json:"reply_to_message"`

	EditDate      present `json:"edit_date"`
	ForwardOrigin present `json:"forward_origin"`
	// ForwardDate is what servers before Bot API 7.0 say instead.
	ForwardDate          present `json:"forward_date"`
	ViaBot               present `json:"via_bot"`
	SenderChat           present `json:"sender_chat"`
	SenderBusinessBot    present `json:"sender_business_bot"`
	BusinessConnectionID present `json:"business_connection_id"`
	GuestQueryID         present `json:"guest_query_id"`
	GuestBotCallerUser   present `json:"guest_bot_caller_user"`
	GuestBotCallerChat   present `json:"guest_bot_caller_chat"`
}

// contact is a Contact. Its names and its vcard are what the sender made them, and are not read.
type contact struct {
	PhoneNumber string `json:"phone_number"`
	// UserID is set by Telegram's server and not by the client that sends the contact (tdlib/td issue 2575).
	UserID *int64 `json:"user_id"`
}

// present is whether a field is there, whatever it holds.
type present bool

// UnmarshalJSON notes that the field is there.
func (p *present) UnmarshalJSON(value []byte) error {
	*p = string(value) != "null"
	return nil
}

var (
	errNoUpdate  = errors.New("not an update")
	errNoMessage = errors.New("not a message")
)

// readUpdate takes an update apart. The id is zero where there is none that can be used. A nil message means that the
// update is of another kind. Errors say nothing of what was read.
//
// Names match exactly, as Telegram writes them: encoding/json would also take FROM for from.
func readUpdate(raw []byte) (id int64, m *message, err error) {
	var e envelope
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &e); err != nil {
		return 0, nil, errNoUpdate
	}
	id = updateID(e.UpdateID)
	if len(e.Message) == 0 || bytes.Equal(e.Message, []byte("null")) {
		return id, nil, nil
	}
	m = &message{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(e.Message, m); err != nil {
		return id, nil, errNoMessage
	}
	return id, m, nil
}

// updateID reads the id of an update: "Update identifiers start from a certain positive number" (reference, Update).
func updateID(raw []byte) int64 {
	id, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || id <= 0 || id > maxUpdateID {
		return 0
	}
	return id
}
