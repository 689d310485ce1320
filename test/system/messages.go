package system

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/messenger/telegram"
	"github.com/phoneproof/phoneproof/internal/messenger/whatsapp"
)

// The paths to which the messengers post.
const (
	WhatsAppPath = whatsapp.Path
	TelegramPath = telegram.HookPath
)

// Message is a webhook request of a messenger.
type Message struct {
	Path   string
	Header http.Header
	Body   []byte
}

// WhatsAppMessage returns the signed webhook request that Meta posts when the user of a number sends a text.
func (p *Project) WhatsAppMessage(number, text, id string, sent time.Time) Message {
	number = strings.TrimPrefix(number, "+")
	body := fmt.Appendf(nil, `{"object":"whatsapp_business_account","entry":[{"id":"1","changes":[{"field":"messages","value":`+
		`{"messaging_product":"whatsapp","metadata":{"display_phone_number":"4915113000000","phone_number_id":%q},`+
		`"contacts":[{"profile":{"name":"Ada"},"wa_id":%q}],`+
		`"messages":[{"from":%q,"id":%q,"timestamp":"%d","type":"text","text":{"body":%s}}]}}]}]}`,
		p.PhoneNumberID, number, number, "wamid."+id, sent.Unix(), quoteJSON(text))
	mac := hmac.New(sha256.New, []byte(p.AppSecret))
	mac.Write(body)
	return Message{WhatsAppPath, http.Header{
		"Content-Type":        {"application/json"},
		"X-Hub-Signature-256": {"sha256=" + hex.EncodeToString(mac.Sum(nil))},
	}, body}
}

// TelegramText returns the update that Telegram posts when a user sends a text.
func (p *Project) TelegramText(update, user int64, text string, sent time.Time) Message {
	return p.telegramUpdate(update, user, sent, `"text":`+quoteJSON(text))
}

// TelegramContact returns the update that Telegram posts when users share their own contact.
func (p *Project) TelegramContact(update, user int64, number string, sent time.Time) Message {
	return p.telegramUpdate(update, user, sent, fmt.Sprintf(`"contact":{"phone_number":%q,"first_name":"Ada","user_id":%d}`,
		strings.TrimPrefix(number, "+"), user))
}

func (p *Project) telegramUpdate(update, user int64, sent time.Time, content string) Message {
	return Message{TelegramPath, http.Header{
		"Content-Type":                    {"application/json"},
		"X-Telegram-Bot-Api-Secret-Token": {telegram.WebhookSecret([]byte(p.BotToken), p.Name())},
	}, fmt.Appendf(nil, `{"update_id":%d,"message":{"message_id":%s,"from":{"id":%d,"is_bot":false,"first_name":"Ada"},`+
		`"chat":{"id":%d,"type":"private"},"date":%d,%s}}`, update, strconv.FormatInt(update, 10), user, user, sent.Unix(), content)}
}

func quoteJSON(text string) string {
	encoded, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string can be encoded
	}
	return string(encoded)
}
