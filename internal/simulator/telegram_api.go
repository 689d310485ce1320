package simulator

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The Bot API, as far as bots need it that take messages: getMe, setWebhook, deleteWebhook, getWebhookInfo, getUpdates,
// sendMessage. The errors are worded as those of github.com/tdlib/telegram-bot-api.

// tgError is an answer that says no.
type tgError struct {
	code       int
	text       string
	retryAfter int
}

func refuseBot(w http.ResponseWriter, e *tgError) {
	body := map[string]any{"ok": false, "error_code": e.code, "description": e.text}
	if e.retryAfter > 0 {
		body["parameters"] = map[string]int{"retry_after": e.retryAfter}
		w.Header().Set("Retry-After", strconv.Itoa(e.retryAfter))
	}
	answerJSON(w, e.code, body)
}

func answerBot(w http.ResponseWriter, result any, description string) {
	body := map[string]any{"ok": true, "result": result}
	if description != "" {
		body["description"] = description
	}
	answerJSON(w, http.StatusOK, body)
}

func badCall(text string) *tgError {
	return &tgError{code: http.StatusBadRequest, text: "Bad Request: " + text}
}

// parameters are those of a call: from the query, a form, or a JSON object.
type parameters map[string]string

func (tg *telegram) serveBotAPI(w http.ResponseWriter, r *http.Request, token, method string) {
	token, err := url.PathUnescape(token)
	tg.mu.Lock()
	b, _ := tg.findBotByToken(token)
	tg.mu.Unlock()
	if err != nil || b == nil {
		refuseBot(w, &tgError{code: http.StatusUnauthorized, text: "Unauthorized"})
		return
	}
	call, ok := map[string]func(http.ResponseWriter, *http.Request, *bot, parameters){
		"getme": tg.getMe, "setwebhook": tg.setWebhook, "deletewebhook": tg.deleteWebhook, "getwebhookinfo": tg.getWebhookInfo,
		"getupdates": tg.getUpdates, "sendmessage": tg.sendMessage,
	}[strings.ToLower(method)]
	if !ok {
		refuseBot(w, &tgError{code: http.StatusNotFound, text: "Not Found"})
		return
	}
	in, e := readParameters(w, r)
	if e == nil {
		e = tg.takeFault(method)
	}
	if e != nil {
		refuseBot(w, e)
		return
	}
	call(w, r, b, in)
}

func (tg *telegram) takeFault(method string) *tgError {
	tg.mu.Lock()
	defer tg.mu.Unlock()
	f := tg.faultFor(onTelegram, method)
	if f == nil {
		return nil
	}
	e := &tgError{code: f.Status, text: http.StatusText(f.Status)}
	if f.Status == http.StatusTooManyRequests {
		e.retryAfter = max(1, f.RetryAfter)
		e.text = "Too Many Requests: retry after " + strconv.Itoa(e.retryAfter)
	}
	return e
}

func readParameters(w http.ResponseWriter, r *http.Request) (parameters, *tgError) {
	r.Body = http.MaxBytesReader(w, r.Body, maxRequestBytes)
	in := parameters{}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		var object map[string]json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&object); err != nil {
			return nil, badCall("object expected as the request body")
		}
		for name, raw := range object {
			var text string
			if json.Unmarshal(raw, &text) != nil {
				text = string(raw)
			}
			in[name] = text
		}
		return in, nil
	}
	if err := r.ParseForm(); err != nil {
		return nil, badCall("the request body cannot be read")
	}
	for name := range r.Form {
		in[name] = r.Form.Get(name)
	}
	return in, nil
}

// number returns a parameter within bounds; otherwise if it is not given.
func (p parameters) number(name string, otherwise, least, most int64) int64 {
	n, err := strconv.ParseInt(p[name], 10, 64)
	if err != nil {
		n = otherwise
	}
	return min(max(n, least), most)
}

func (tg *telegram) getMe(w http.ResponseWriter, _ *http.Request, b *bot, _ parameters) {
	answerBot(w, map[string]any{
		"id": b.id, "is_bot": true, "first_name": b.Username, "username": b.Username, "can_join_groups": true,
		"can_read_all_group_messages": false, "supports_inline_queries": false, "can_connect_to_business": false,
		"has_main_web_app": false,
	}, "")
}

var secretToken = regexp.MustCompile(`^[A-Za-z0-9_-]{1,256}$`)

func (tg *telegram) setWebhook(w http.ResponseWriter, r *http.Request, b *bot, in parameters) {
	to, secret := in["url"], in["secret_token"]
	if to == "" {
		tg.deleteWebhook(w, r, b, in)
		return
	}
	switch {
	case !strings.HasPrefix(to, "https://"):
		refuseBot(w, badCall("bad webhook: An HTTPS URL must be provided for webhook"))
		return
	case !isCallbackURL(to):
		refuseBot(w, badCall("invalid webhook URL specified"))
		return
	case secret != "" && !secretToken.MatchString(secret):
		refuseBot(w, badCall("secret token contains unallowed characters"))
		return
	}
	tg.mu.Lock()
	defer tg.mu.Unlock()
	description := "Webhook was set"
	if b.Webhook == to && b.secret == secret {
		description = "Webhook is already set"
	}
	b.Webhook, b.secret = to, secret
	b.maxConns = int(in.number("max_connections", 40, 1, 100))
	b.setAllowedUpdates(in)
	b.dropPending(in)
	b.lastError, b.lastFailed = "", time.Time{}
	tg.endPoll(b, "Conflict: terminated by setWebhook request")
	tg.publish(event{Type: "account", Platform: onTelegram, Account: b.Username})
	answerBot(w, true, description)
}

func (tg *telegram) deleteWebhook(w http.ResponseWriter, _ *http.Request, b *bot, in parameters) {
	tg.mu.Lock()
	defer tg.mu.Unlock()
	description := "Webhook was deleted"
	if b.Webhook == "" {
		description = "Webhook is already deleted"
	}
	b.Webhook, b.secret = "", ""
	b.dropPending(in)
	tg.publish(event{Type: "account", Platform: onTelegram, Account: b.Username})
	answerBot(w, true, description)
}

func (b *bot) dropPending(in parameters) {
	if drop, err := strconv.ParseBool(in["drop_pending_updates"]); err == nil && drop {
		b.pending = nil
	}
}

// setAllowedUpdates notes which kinds of updates the bot wants; it stays as it is if the call does not say.
func (b *bot) setAllowedUpdates(in parameters) {
	raw, ok := in["allowed_updates"]
	if !ok {
		return
	}
	var kinds []string
	if json.Unmarshal([]byte(raw), &kinds) != nil || len(kinds) == 0 {
		kinds = nil
	}
	b.allowed = kinds
}

func (tg *telegram) getWebhookInfo(w http.ResponseWriter, _ *http.Request, b *bot, _ parameters) {
	tg.mu.Lock()
	defer tg.mu.Unlock()
	info := map[string]any{"url": b.Webhook, "has_custom_certificate": false, "pending_update_count": len(b.pending)}
	if b.Webhook != "" {
		info["max_connections"] = b.maxConns
		info["ip_address"] = "127.0.0.1"
	}
	if b.allowed != nil {
		info["allowed_updates"] = b.allowed
	}
	if !b.lastFailed.IsZero() {
		info["last_error_date"], info["last_error_message"] = b.lastFailed.Unix(), b.lastError
	}
	answerBot(w, info, "")
}

// markup is the reply_markup of a message, as far as it is shown.
type markup struct {
	Keyboard [][]struct {
		Text           string `json:"text"`
		RequestContact bool   `json:"request_contact"`
	} `json:"keyboard"`
	OneTime        bool `json:"one_time_keyboard"`
	RemoveKeyboard bool `json:"remove_keyboard"`
}

// linkPreview is the link_preview_options of a message, as far as it counts.
type linkPreview struct {
	Disabled bool `json:"is_disabled"`
}

// webLink matches what Telegram takes for a link, of which it fetches the first for a preview.
var webLink = regexp.MustCompile(`https?://\S`)

// buttonTitles returns the texts of the buttons.
func (m markup) buttonTitles() []string {
	var all []string
	for _, row := range m.Keyboard {
		for _, button := range row {
			all = append(all, button.Text)
		}
	}
	return all
}

func (tg *telegram) sendMessage(w http.ResponseWriter, _ *http.Request, b *bot, in parameters) {
	var keyboard markup
	if raw := in["reply_markup"]; raw != "" && json.Unmarshal([]byte(raw), &keyboard) != nil {
		refuseBot(w, badCall("can't parse reply keyboard markup JSON object"))
		return
	}
	var preview linkPreview
	if raw := in["link_preview_options"]; raw != "" && json.Unmarshal([]byte(raw), &preview) != nil {
		refuseBot(w, badCall("can't parse link preview options JSON object"))
		return
	}
	text := in["text"]
	switch {
	case strings.TrimSpace(text) == "":
		refuseBot(w, badCall("message text is empty"))
		return
	case len([]rune(text)) > maxTextRunes:
		refuseBot(w, badCall("message is too long"))
		return
	}
	tg.mu.Lock()
	defer tg.mu.Unlock()
	u, c := tg.findChat(b, in.number("chat_id", 0, 0, 1<<53))
	if c == nil {
		refuseBot(w, badCall("chat not found"))
		return
	}
	c.lastID++
	now := tg.clock.Now()
	c.addLine(&line{ID: strconv.FormatInt(c.lastID, 10), From: fromBusiness, At: now.UTC(), Text: text})
	c.applyMarkup(keyboard)
	if c.AsksForContact && keyboard.Keyboard != nil {
		c.promptID, c.promptAt = strconv.FormatInt(c.lastID, 10), now
	}
	tg.recordSent(sentMessage{
		Platform: onTelegram, Account: b.Username, Recipient: maskAddress(strconv.FormatInt(u.TelegramID, 10)), Type: "text",
		Buttons: keyboard.buttonTitles(), LinkPreview: !preview.Disabled && webLink.MatchString(text),
	})
	tg.publish(event{Type: "reply", User: u.ID, Chat: c.ID, Platform: onTelegram})
	self := b.asTelegramUser()
	answerBot(w, tgMessage{ID: c.lastID, From: &self, Chat: u.telegramChat(), Date: now.Unix(), Text: text}, "")
}

// findChat returns the user of a private chat with the bot, who must have written first; nil if there is none.
func (tg *telegram) findChat(b *bot, id int64) (*user, *chat) {
	for _, u := range tg.phones.users {
		if u.TelegramID != id {
			continue
		}
		if c, f := u.findChat(onTelegram + ":" + b.key()); f == nil && !c.wroteAt.IsZero() {
			return u, c
		}
	}
	return nil, nil
}

func (c *chat) applyMarkup(m markup) {
	if m.RemoveKeyboard || m.Keyboard != nil {
		c.AsksForContact, c.Button, c.Replies = false, "", nil
	}
	for _, row := range m.Keyboard {
		for _, button := range row {
			if button.RequestContact {
				c.AsksForContact, c.Button = true, button.Text
			} else {
				c.Replies = append(c.Replies, replyButton{Title: button.Text})
			}
		}
	}
	c.repliesOnce = m.OneTime
}
