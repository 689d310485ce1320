package telegram

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// secretHeader carries the secret_token of setWebhook in every request of Telegram's. It is a password and no signature:
// it allows to write any update.
const secretHeader = "X-Telegram-Bot-Api-Secret-Token" //nolint:gosec // a name

// The purposes of keys that are derived from a bot token, so that none reveals another.
const (
	purposeWebhook = "phoneproof telegram webhook"
	purposeSender  = "phoneproof telegram sender"
)

// WebhookSecret returns the secret_token for a project's webhook: HMAC-SHA256 of purpose and project under the bot's
// token, in 43 characters of base64url, all of which setWebhook allows. So nothing more is stored, every replica knows
// it, and two projects have two.
func WebhookSecret(botToken []byte, project string) string {
	return base64.RawURLEncoding.EncodeToString(deriveKey(botToken, purposeWebhook, project))
}

func deriveKey(key []byte, parts ...string) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range parts {
		io.WriteString(mac, part+"\x00") //nolint:errcheck // hash.Hash never returns an error, and no part has a NUL
	}
	return mac.Sum(nil)
}

// isAuthentic reports whether a request carries the webhook's secret, for the current token or one that was replaced a moment ago:
// Telegram goes on with the old one until the new webhook is set.
func isAuthentic(h http.Header, s *settings.Settings, now time.Time) bool {
	given := h.Values(secretHeader)
	if len(given) != 1 || given[0] == "" || len(given[0]) > maxSecretBytes {
		return false
	}
	return messenger.MatchesSecret(given[0], s.Telegram.BotToken.Accepted(now), func(token []byte) string {
		return WebhookSecret(token, s.Project)
	})
}

// senderBindings returns the keyed hash of a sender under each token that is accepted at now, the current one first: who sent
// the code before the token was replaced and shares the contact after it is still known. 128 bits in hex.
func senderBindings(s *settings.Settings, sender int64, now time.Time) []string {
	bot, id := strings.ToLower(s.Telegram.BotUsername), strconv.FormatInt(sender, 10)
	var all []string
	for _, token := range s.Telegram.BotToken.Accepted(now) {
		all = append(all, hex.EncodeToString(deriveKey(token, purposeSender, s.Project, bot, id)[:16]))
	}
	return all
}
