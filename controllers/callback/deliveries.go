package callback

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/messenger/telegram"
)

// recentError is how long an error of Telegram's counts as current. While a webhook fails, Telegram retries at least once a
// minute (WebhookActor.cpp), so a lasting failure has a newer error.
const recentError = 10 * time.Minute

// deliveryProblem returns why Telegram cannot deliver the updates that wait for a webhook; empty if it can. An error with no
// waiting updates is over.
func deliveryProblem(info telegram.WebhookInfo, now time.Time) string {
	if info.URL == "" || info.PendingUpdateCount == 0 || now.Sub(info.LastErrorAt()) > recentError {
		return ""
	}
	return describeUndeliverable(info.LastErrorMessage)
}

// hasForeignSecret reports whether our own hook refuses Telegram's posts for a wrong secret: our address was registered with
// another one, by a former leader or from elsewhere. Telegram never returns the secret, so only its errors reveal that.
func hasForeignSecret(info telegram.WebhookInfo, now time.Time) bool {
	if deliveryProblem(info, now) == "" {
		return false
	}
	status := responseStatus.FindStringSubmatch(info.LastErrorMessage)
	return status != nil && status[1] == strconv.Itoa(http.StatusUnauthorized)
}

// responseStatus finds the status in "Wrong response from the webhook: 503 Service Unavailable".
var responseStatus = regexp.MustCompile(`response from the webhook: ([1-5][0-9]{2})\b`)

// deliveryErrors maps Telegram's error texts to our own, because Telegram's may contain anything; the first match counts. The
// texts are those of WebhookActor.cpp, Client.cpp and the libraries below them.
var deliveryErrors = []struct{ says, means string }{
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

// describeUndeliverable returns the message for a webhook that Telegram cannot reach, with the cause if it is known.
func describeUndeliverable(telegramSays string) string {
	const message = "Telegram cannot deliver messages to spec.baseURL: "
	if status := responseStatus.FindStringSubmatch(telegramSays); status != nil {
		return message + "it answers with the status " + status[1]
	}
	for _, cause := range deliveryErrors {
		if strings.Contains(strings.ToLower(telegramSays), cause.says) {
			return message + cause.means
		}
	}
	return message + "it must be reachable from the internet, by https and IPv4, and lead to this project"
}
