package simulator

import (
	"strings"
	"time"
)

// The shapes of the Bot API's updates (core.telegram.org/bots/api: Update, Message, User, Chat, Contact).
type (
	tgUser struct {
		ID        int64  `json:"id"`
		IsBot     bool   `json:"is_bot"`
		FirstName string `json:"first_name"`
		LastName  string `json:"last_name,omitempty"`
		Username  string `json:"username,omitempty"`
		Language  string `json:"language_code,omitempty"`
	}
	tgChat struct {
		ID        int64  `json:"id"`
		FirstName string `json:"first_name,omitempty"`
		LastName  string `json:"last_name,omitempty"`
		Username  string `json:"username,omitempty"`
		Type      string `json:"type"`
	}
	tgMessage struct {
		ID            int64      `json:"message_id"`
		From          *tgUser    `json:"from,omitempty"`
		Chat          tgChat     `json:"chat"`
		Date          int64      `json:"date"`
		ForwardOrigin *tgOrigin  `json:"forward_origin,omitempty"`
		Text          string     `json:"text,omitempty"`
		Entities      []tgEntity `json:"entities,omitempty"`
		Contact       *tgContact `json:"contact,omitempty"`
		ReplyTo       *tgMessage `json:"reply_to_message,omitempty"`
	}
	tgOrigin struct {
		Type       string `json:"type"`
		SenderUser tgUser `json:"sender_user"`
		Date       int64  `json:"date"`
	}
	tgEntity struct {
		Offset int    `json:"offset"`
		Length int    `json:"length"`
		Type   string `json:"type"`
	}
	tgContact struct {
		Phone     string `json:"phone_number"`
		FirstName string `json:"first_name"`
		LastName  string `json:"last_name,omitempty"`
		UserID    int64  `json:"user_id,omitempty"`
	}
	tgUpdate map[string]any
)

// kindMessage is the kind of all updates here.
const kindMessage = "message"

func (u *user) telegramUser() *tgUser {
	return &tgUser{ID: u.TelegramID, FirstName: u.firstName(), LastName: u.lastName(), Username: u.Username, Language: "en"}
}

func (u *user) telegramChat() tgChat {
	return tgChat{ID: u.TelegramID, FirstName: u.firstName(), LastName: u.lastName(), Username: u.Username, Type: "private"}
}

// newTelegramMessage returns an empty message of the user in the private chat with a bot. The ids of a chat's messages are one sequence.
func (u *user) newTelegramMessage(c *chat, at time.Time) tgMessage {
	c.lastID++
	return tgMessage{ID: c.lastID, From: u.telegramUser(), Chat: u.telegramChat(), Date: at.Unix()}
}

func (u *user) telegramText(c *chat, text string, at time.Time) tgMessage {
	m := u.newTelegramMessage(c, at)
	m.Text = text
	if strings.HasPrefix(text, "/") {
		command, _, _ := strings.Cut(text, " ")
		m.Entities = []tgEntity{{Length: len(command), Type: "bot_command"}}
	}
	return m
}

// telegramContact returns the user's own contact as the button shares it: with the id that Telegram puts there itself.
func (u *user) telegramContact(c *chat, at time.Time) tgMessage {
	m := u.newTelegramMessage(c, at)
	m.Contact = &tgContact{Phone: u.TelegramPhone, FirstName: u.firstName(), LastName: u.lastName(), UserID: u.TelegramID}
	return m
}

// inReplyTo returns the message as an answer to the one with the button, which is how apps send a contact that it shares.
func (m tgMessage) inReplyTo(b *bot, id, at int64) tgMessage {
	self := b.asTelegramUser()
	m.ReplyTo = &tgMessage{ID: id, From: &self, Chat: m.Chat, Date: at}
	return m
}
