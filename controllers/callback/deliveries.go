package callback

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/messenger/telegram"
)

// recentError is how long an error of Telegram's counts as one of now. While a webhook fails Telegram tries at least once a
// minute (WebhookActor.cpp), so there is a newer one if it still does.
const recentError = 10 * time.Minute

// failing returns why Telegram does not get rid of what waits for a webhook; empty if it does. An error behind which
// nothing waits any more is over.
func failing(info telegram.WebhookInfo, now time.Time) string {
	if info.URL == "" || info.PendingUpdateCount == 0 || now.Sub(info.LastErrorAt()) > recentError {
		return ""
	}
	return undeliverable(info.LastErrorMessage)
}

// strange tells whether our own hook refuses what Telegram posts, because it does not carry our secret: our address was
// registered with another one, by a former leader or from elsewhere. Telegram never tells the secret, so this is how that
// shows.
func strange(info telegram.WebhookInfo, now time.Time) bool {
	if failing(info, now) == "" {
		return false
	}
	status := answered.FindStringSubmatch(info.LastErrorMessage)
	return status != nil && status[1] == strconv.Itoa(http.StatusUnauthorized)
}

// answered finds the status in "Wrong response from the webhook: 503 Service Unavailable".
var answered = regexp.MustCompile(`response from the webhook: ([1-5][0-9]{2})\b`)

// causes put what Telegram says of a webhook into our words, because nobody promises what is in its own: the first that
// occurs counts. They are texts of WebhookActor.cpp, Client.cpp and of the libraries below them.
var causes = []struct{ says, means string }{
	{"resolve", "the name of its host cannot be resolved"},
	{"reserved", "its host has an address that is not public"},
	{"ports", "Telegram takes the ports 443, 80, 88 and 8443 only"},
	{"https url must", "it must begin with https://"},
	{"certificate", "its certificate is not valid, or does not come with those of its issuers"},
	{"ssl", "the TLS handshake fails"},
	{"timed out", "nothing answers there in time"},
	{"timeout", "nothing answers there in time"},
	{"refused", "nothing listens there"},
	{"unreachable", "there is no way to it from the internet"},
	{"connection", "connections to it break"},
}

// undeliverable says that Telegram does not reach our webhook, and why as far as it is known.
func undeliverable(telegramSays string) string {
	const message = "Telegram cannot deliver messages to spec.baseURL: "
	if status := answered.FindStringSubmatch(telegramSays); status != nil {
		return message + "it answers with the status " + status[1]
	}
	for _, cause := range causes {
		if strings.Contains(strings.ToLower(telegramSays), cause.says) {
			return message + cause.means
		}
	}
	return message + "it must be reachable from the internet, by https and IPv4, and lead to this project"
}
