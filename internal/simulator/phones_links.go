package simulator

import (
	"net/url"
	"regexp"
	"strings"
)

// target is where a link leads.
type target struct {
	platform string
	peer     string
	draft    string
}

var (
	botUsername = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{3,30}[A-Za-z0-9]$`)
	startValue  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
)

// parseLink reads a link as the messengers' apps do: https://wa.me/NUMBER?text=DRAFT and https://t.me/BOT?start=PAYLOAD.
func parseLink(link string) (target, *failure) {
	u, err := url.Parse(strings.TrimSpace(link))
	if err != nil || u.Scheme != "https" || u.User != nil || u.Port() != "" {
		return target{}, badRequest("link", "want https://wa.me/NUMBER?text=... or https://t.me/BOT?start=...")
	}
	peer := strings.Trim(u.Path, "/")
	switch u.Hostname() {
	case "wa.me":
		if !waDigits.MatchString(peer) {
			return target{}, badRequest("link", "after wa.me/ WhatsApp wants the number's digits, without a plus")
		}
		draft, ok := waDraft(u.RawQuery)
		if !ok {
			return target{}, badRequest("link", "the text of the link is not percent-encoded")
		}
		return target{onWhatsApp, peer, draft}, nil
	case "t.me", "telegram.me":
		if !botUsername.MatchString(peer) {
			return target{}, badRequest("link", "after t.me/ Telegram wants a username")
		}
		start := u.Query().Get("start")
		if !startValue.MatchString(start) {
			return target{}, badRequest("link", "start must be 1 to 64 characters of A-Z, a-z, 0-9, _ and -")
		}
		return target{onTelegram, strings.ToLower(peer), "/start " + start}, nil
	default:
		return target{}, badRequest("link", "that host is neither WhatsApp nor Telegram")
	}
}

// waDraft returns the text of a query. WhatsApp takes a plus for a plus, not for a space.
func waDraft(query string) (string, bool) {
	for part := range strings.SplitSeq(query, "&") {
		if encoded, ok := strings.CutPrefix(part, "text="); ok {
			text, err := url.PathUnescape(encoded)
			return text, err == nil
		}
	}
	return "", true
}
