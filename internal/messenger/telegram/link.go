package telegram

import "github.com/phoneproof/phoneproof/internal/verification"

// ExpectedText returns what the user's client sends after opening the link and tapping START, and what the user
// may type instead.
func ExpectedText(code verification.Code) string { return "/start " + code.Grouped() }

// Link returns the deep link to the bot. A payload has 1 to 64 characters of A-Z, a-z, 0-9, _ and - (Telegram, "Deep
// linking"); a grouped code has 19 of them.
func Link(botUsername string, code verification.Code) string {
	return "https://t.me/" + botUsername + "?start=" + code.Grouped()
}
