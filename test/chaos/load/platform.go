package load

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/phoneproof/phoneproof/test/system"
)

// Platform is the Bot API and the Graph API, as far as the replicas call them: it accepts every message, and remembers which users were
// asked for their contact and what session codes they received. The load itself posts the webhooks, in batches and at any replica.
type Platform struct {
	*system.Server

	// Desk takes the codes.
	Desk Desk

	mu     sync.Mutex
	asked  map[int64]bool
	digits map[string]string
}

// StartPlatform runs the APIs. The caller must Close them.
func StartPlatform(ctx context.Context) (*Platform, error) {
	p := &Platform{Desk: Desk{calm: make(chan struct{})}, asked: map[int64]bool{}, digits: map[string]string{}}
	var err error
	p.Server, err = system.Serve(ctx, p)
	return p, err
}

// wasAsked reports whether a user has the button that shares their contact.
func (p *Platform) wasAsked(user int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[user]
}

// lastDigits returns the session code that was sent last to a WhatsApp number, without a plus, or to a Telegram user; empty if none was.
func (p *Platform) lastDigits(recipient string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.digits[recipient]
}

// sixDigits finds a session code in a text.
var sixDigits = regexp.MustCompile(`(?:^|[^0-9])([0-9]{6})(?:[^0-9]|$)`)

// recordMessage records the session code of a text, if it has one, and whether its recipient, if it is a Telegram user, was asked.
func (p *Platform) recordMessage(recipient, text string, user int64, asked bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if found := sixDigits.FindStringSubmatch(text); found != nil {
		p.digits[recipient] = found[1]
	}
	if asked {
		p.asked[user] = true
	}
}

// call is the body of a call of either API, as far as it is read.
type call struct {
	To          string `json:"to"`
	Interactive struct {
		Body struct {
			Text string `json:"text"`
		} `json:"body"`
	} `json:"interactive"`
	ChatID int64  `json:"chat_id"`
	Text   string `json:"text"`
	Markup struct {
		Keyboard [][]struct {
			RequestContact bool `json:"request_contact"`
		} `json:"keyboard"`
	} `json:"reply_markup"`
}

func (c *call) requestsContact() bool {
	for _, row := range c.Markup.Keyboard {
		for _, button := range row {
			if button.RequestContact {
				return true
			}
		}
	}
	return false
}

// ServeHTTP answers a call of either API.
func (p *Platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxAnswer))
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if p.Desk.serve(w, r, body) {
		return
	}
	var c call
	_ = json.Unmarshal(body, &c) // a call without such a body sends nothing
	bot, method, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case !strings.HasPrefix(bot, "bot"):
		p.recordMessage(c.To, c.Interactive.Body.Text, 0, false)
		_, _ = io.WriteString(w, `{"messaging_product":"whatsapp","contacts":[],"messages":[{"id":"wamid.reply"}]}`)
	case method == "sendMessage":
		p.recordMessage(strconv.FormatInt(c.ChatID, 10), c.Text, c.ChatID, c.requestsContact())
		_, _ = fmt.Fprintf(w, `{"ok":true,"result":{"message_id":1,"date":%d,"chat":{"id":%d,"type":"private"}}}`, time.Now().Unix(), c.ChatID)
	case method == "getMe":
		_, _ = io.WriteString(w, `{"ok":true,"result":{"id":100000,"is_bot":true,"first_name":"Shop","username":"shop_0_bot"}}`)
	case method == "getWebhookInfo":
		_, _ = io.WriteString(w, `{"ok":true,"result":{"url":"","pending_update_count":0}}`)
	default:
		_, _ = io.WriteString(w, `{"ok":true,"result":true}`)
	}
}
