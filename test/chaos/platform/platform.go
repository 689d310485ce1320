// Package platform implements the messengers' APIs that PhoneProof calls, as far as a chaos run needs them: a Bot API and
// a Graph API in their wire formats, which accept every message and record which users were asked for a contact.
//
// The invariant: a user counts as asked only after receiving the keyboard that shares their contact.
package platform

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

const maxCall = 64 << 10

// Platform is the running APIs.
type Platform struct {
	// URL is the base of both APIs.
	URL string

	server *http.Server
	done   sync.WaitGroup

	mu     sync.Mutex
	asked  map[int64]bool
	digits map[string]string
	calls  int
}

// Start runs the APIs. The caller must Close them.
func Start(ctx context.Context) (*Platform, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start platforms: %w", err)
	}
	p := &Platform{URL: "http://" + listener.Addr().String(), asked: map[int64]bool{}, digits: map[string]string{}}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	p.done.Go(func() { _ = p.server.Serve(listener) }) // ends with Close
	return p, nil
}

// Close stops the APIs.
func (p *Platform) Close() error {
	err := p.server.Close()
	p.done.Wait()
	return err
}

// Asked reports whether a user has the button that shares their contact.
func (p *Platform) Asked(user int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[user]
}

// Digits returns the session code that was sent last to a WhatsApp number, without a plus, or to a Telegram user; empty if none was.
func (p *Platform) Digits(recipient string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.digits[recipient]
}

// sixDigits finds a session code in a text.
var sixDigits = regexp.MustCompile(`(?:^|[^0-9])([0-9]{6})(?:[^0-9]|$)`)

// recordDigits records the session code of a text, if it has one.
func (p *Platform) recordDigits(recipient, text string) {
	if found := sixDigits.FindStringSubmatch(text); found != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.digits[recipient] = found[1]
	}
}

// graphMessage is the body of the Graph API's call, as far as a session code needs it.
type graphMessage struct {
	To          string `json:"to"`
	Interactive struct {
		Body struct {
			Text string `json:"text"`
		} `json:"body"`
	} `json:"interactive"`
}

// Calls returns how many calls came.
func (p *Platform) Calls() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

// sendMessage is the body of the Bot API's call, as far as the button needs it.
type sendMessage struct {
	ChatID      int64  `json:"chat_id"`
	Text        string `json:"text"`
	ReplyMarkup struct {
		Keyboard [][]struct {
			RequestContact bool `json:"request_contact"`
		} `json:"keyboard"`
	} `json:"reply_markup"`
}

func (m *sendMessage) requestsContact() bool {
	for _, row := range m.ReplyMarkup.Keyboard {
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
	body, err := io.ReadAll(io.LimitReader(r.Body, maxCall))
	if err != nil {
		return
	}
	p.mu.Lock()
	p.calls++
	p.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	bot, method, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if !ok || !strings.HasPrefix(bot, "bot") {
		var m graphMessage
		if json.Unmarshal(body, &m) == nil { // other calls have no such body
			p.recordDigits(m.To, m.Interactive.Body.Text)
		}
		_, _ = io.WriteString(w, `{"messaging_product":"whatsapp","contacts":[],"messages":[{"id":"wamid.reply"}]}`)
		return
	}
	switch method {
	case "sendMessage":
		var m sendMessage
		if err := json.Unmarshal(body, &m); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"ok":false,"error_code":400,"description":"Bad Request: can't parse"}`)
			return
		}
		p.recordDigits(strconv.FormatInt(m.ChatID, 10), m.Text)
		if m.requestsContact() {
			p.mu.Lock()
			p.asked[m.ChatID] = true
			p.mu.Unlock()
		}
		_, _ = fmt.Fprintf(w, `{"ok":true,"result":{"message_id":1,"date":%d,"chat":{"id":%d,"type":"private"}}}`, time.Now().Unix(), m.ChatID)
	case "getMe":
		_, _ = io.WriteString(w, `{"ok":true,"result":{"id":100000,"is_bot":true,"first_name":"Shop","username":"shop_0_bot"}}`)
	case "getWebhookInfo":
		_, _ = io.WriteString(w, `{"ok":true,"result":{"url":"","pending_update_count":0}}`)
	default:
		_, _ = io.WriteString(w, `{"ok":true,"result":true}`)
	}
}
