package telegram

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/phoneproof/phoneproof/internal/settings"
)

// onlyMessages is the one kind of update that is asked for. Telegram may still have others in its queue: the list "doesn't
// affect updates created before the call" (reference, setWebhook and getUpdates).
var onlyMessages = []string{"message"}

// The methods that are called.
const (
	methodGetMe          = "getMe"
	methodGetWebhookInfo = "getWebhookInfo"
	methodSetWebhook     = "setWebhook"
	methodDeleteWebhook  = "deleteWebhook"
	methodGetUpdates     = "getUpdates"
	methodSendMessage    = "sendMessage"
)

var methods = [...]string{
	methodGetMe, methodGetWebhookInfo, methodSetWebhook, methodDeleteWebhook, methodGetUpdates, methodSendMessage,
}

// Bot is the account behind a token.
type Bot struct {
	ID       int64  `json:"id"`
	IsBot    bool   `json:"is_bot"`
	Username string `json:"username"`
}

// GetMe returns the bot that the token belongs to.
func (c *Client) GetMe(ctx context.Context, account *settings.Telegram) (Bot, error) {
	return query[Bot](ctx, c, account, shortCall(methodGetMe), struct{}{})
}

// WebhookInfo describes a bot's webhook.
type WebhookInfo struct {
	// URL is empty if there is no webhook.
	URL                string   `json:"url"`
	PendingUpdateCount int      `json:"pending_update_count"`
	LastErrorDate      int64    `json:"last_error_date"`
	LastErrorMessage   string   `json:"last_error_message"`
	IPAddress          string   `json:"ip_address"`
	MaxConnections     int      `json:"max_connections"`
	AllowedUpdates     []string `json:"allowed_updates"`
}

// LastErrorAt returns when posting failed last; zero if never.
func (i WebhookInfo) LastErrorAt() time.Time {
	if i.LastErrorDate <= 0 {
		return time.Time{}
	}
	return time.Unix(i.LastErrorDate, 0)
}

// OnlyMessages reports whether the subscribed updates are exactly those that SetWebhook asks for.
func (i WebhookInfo) OnlyMessages() bool {
	return len(i.AllowedUpdates) == 1 && i.AllowedUpdates[0] == onlyMessages[0]
}

// GetWebhookInfo returns the webhook of the bot.
func (c *Client) GetWebhookInfo(ctx context.Context, account *settings.Telegram) (WebhookInfo, error) {
	return query[WebhookInfo](ctx, c, account, shortCall(methodGetWebhookInfo), struct{}{})
}

type setWebhook struct {
	URL            string   `json:"url"`
	SecretToken    string   `json:"secret_token"`
	AllowedUpdates []string `json:"allowed_updates"`
	MaxConnections int      `json:"max_connections"`
}

// SetWebhook has Telegram post the bot's messages to url with that secret token; see WebhookSecret. What is waiting is
// posted too.
func (c *Client) SetWebhook(ctx context.Context, account *settings.Telegram, url, secretToken string) error {
	return c.callMethod(ctx, account, shortCall(methodSetWebhook), setWebhook{url, secretToken, onlyMessages, maxConnections}, nil)
}

type deleteWebhook struct {
	DropPendingUpdates bool `json:"drop_pending_updates"`
}

// DeleteWebhook ends the webhook. What is waiting stays, for getUpdates.
func (c *Client) DeleteWebhook(ctx context.Context, account *settings.Telegram) error {
	return c.callMethod(ctx, account, shortCall(methodDeleteWebhook), deleteWebhook{DropPendingUpdates: false}, nil)
}

type getUpdates struct {
	Offset         int64    `json:"offset,omitempty"`
	Limit          int      `json:"limit"`
	Timeout        int      `json:"timeout"`
	AllowedUpdates []string `json:"allowed_updates"`
}

// GetUpdates waits up to timeout for updates and returns up to limit of them, raw, so that one that cannot be read does
// not spoil the others. All before offset are confirmed by it: Telegram forgets them. Offset zero confirms none.
func (c *Client) GetUpdates(
	ctx context.Context, account *settings.Telegram, offset int64, limit int, timeout time.Duration,
) ([]json.RawMessage, error) {
	k := call{method: methodGetUpdates, timeout: timeout + pollSlack, maxBytes: maxUpdatesBytes}
	return query[[]json.RawMessage](ctx, c, account, k, getUpdates{offset, limit, int(timeout / time.Second), onlyMessages})
}

// sendMessage has no parse_mode: the text is plain, whatever is in it.
type sendMessage struct {
	ChatID int64  `json:"chat_id"`
	Text   string `json:"text"`
	// LinkPreviewOptions is nil for the usual preview, for which Telegram's servers fetch the first link of the text.
	LinkPreviewOptions *linkPreviewOptions `json:"link_preview_options,omitempty"`
	// ReplyMarkup is a *replyKeyboard, a *removeKeyboard or nil.
	ReplyMarkup any `json:"reply_markup,omitempty"`
}

type linkPreviewOptions struct {
	IsDisabled bool `json:"is_disabled"`
}

// replyKeyboard is a ReplyKeyboardMarkup, removeKeyboard a ReplyKeyboardRemove of the reference.
type (
	replyKeyboard struct {
		Keyboard        [][]keyboardButton `json:"keyboard"`
		ResizeKeyboard  bool               `json:"resize_keyboard"`
		OneTimeKeyboard bool               `json:"one_time_keyboard"`
	}
	keyboardButton struct {
		Text           string `json:"text"`
		RequestContact bool   `json:"request_contact,omitempty"`
	}
	removeKeyboard struct {
		RemoveKeyboard bool `json:"remove_keyboard"`
	}
)

// Keyboard is the effect of a message on the keyboard of the user's chat. Its zero value leaves it as it is.
type Keyboard struct {
	// Contact is the title of one button that shares the user's own contact; empty for none.
	Contact string
	// Answer is the title of one button that sends the title as a text; empty for none.
	Answer string
	// Remove takes the button away.
	Remove bool
}

// SendMessage sends a plain text to a private chat.
func (c *Client) SendMessage(ctx context.Context, account *settings.Telegram, chat int64, text string, keyboard Keyboard) error {
	m := sendMessage{ChatID: chat, Text: text, ReplyMarkup: keyboard.markup()}
	return c.callMethod(ctx, account, shortCall(methodSendMessage), m, nil)
}

// SendWithoutPreview is SendMessage for a text whose links are for its reader alone: Telegram's servers do not fetch them.
func (c *Client) SendWithoutPreview(
	ctx context.Context, account *settings.Telegram, chat int64, text string, keyboard Keyboard,
) error {
	m := sendMessage{
		ChatID: chat, Text: text, ReplyMarkup: keyboard.markup(), LinkPreviewOptions: &linkPreviewOptions{IsDisabled: true},
	}
	return c.callMethod(ctx, account, shortCall(methodSendMessage), m, nil)
}

// markup returns the reply_markup of a message; nil for none.
func (k Keyboard) markup() any {
	button := keyboardButton{Text: k.Answer}
	switch {
	case k.Contact != "":
		button = keyboardButton{Text: k.Contact, RequestContact: true}
	case k.Remove:
		return &removeKeyboard{RemoveKeyboard: true}
	case k.Answer == "":
		return nil
	}
	return &replyKeyboard{Keyboard: [][]keyboardButton{{button}}, ResizeKeyboard: true, OneTimeKeyboard: true}
}

// query makes a call and returns its result.
func query[T any](ctx context.Context, c *Client, account *settings.Telegram, k call, in any) (T, error) {
	var result T
	if err := c.callMethod(ctx, account, k, in, &result); err != nil {
		return result, fmt.Errorf("query Bot API: %w", err)
	}
	return result, nil
}

func shortCall(method string) call {
	return call{method: method, timeout: callTimeout, maxBytes: maxAnswerBytes}
}
