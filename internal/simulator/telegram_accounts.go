package simulator

import (
	"slices"
	"strings"

	"github.com/phoneproof/phoneproof/internal/settings"
)

// TelegramAccount is a bot as its owner sets it up.
type TelegramAccount struct {
	Username string `json:"username"`
	// Token is another token of the bot beside those that name it.
	Token string `json:"token,omitempty"`
	// Callback is where updates go as if setWebhook had said so, with Secret as its secret_token.
	Callback string `json:"callback,omitempty"`
	Secret   string `json:"secret,omitempty"`
}

func (tg *telegram) addAccount(a TelegramAccount) *failure {
	switch {
	case !botUsername.MatchString(a.Username):
		return badRequest("username", "want a bot's username")
	case a.Token != "" && !settings.Simulated(a.Token):
		return badRequest("token", "only tokens that begin with sim_ are taken")
	case a.Callback != "" && !isCallbackURL(a.Callback):
		return badRequest("callback", "want an http or https URL")
	case a.Secret != "" && !secretToken.MatchString(a.Secret):
		return badRequest("secret", "want 1 to 256 characters of A-Z, a-z, 0-9, _ and -")
	}
	tg.mu.Lock()
	defer tg.mu.Unlock()
	b, f := tg.findOrAddBot(a.Username)
	if f != nil {
		return f
	}
	if a.Token != "" && !slices.Contains(b.tokens, a.Token) {
		b.tokens = appendBounded(b.tokens, a.Token, maxChats)
	}
	if a.Callback != "" {
		b.Webhook, b.secret = a.Callback, a.Secret
	}
	tg.publish(event{Type: "account", Platform: onTelegram, Account: b.Username})
	return nil
}

// findOrAddBot returns the bot of a name, which exists from now on. The lock is held.
func (tg *telegram) findOrAddBot(username string) (*bot, *failure) {
	if b := tg.findBotByName(username); b != nil {
		return b, nil
	}
	if len(tg.bots) >= maxAccounts {
		return nil, tooMany(maxAccounts, "bots")
	}
	b := &bot{Username: username, id: firstBotID + int64(len(tg.bots)), nextUpdate: firstUpdateID}
	tg.bots = append(tg.bots, b)
	return b, nil
}

// findBotByName returns the bot of a name; nil if there is none. The lock is held.
func (tg *telegram) findBotByName(username string) *bot {
	for _, b := range tg.bots {
		if strings.EqualFold(b.Username, username) {
			return b
		}
	}
	return nil
}

// findBotByToken returns the bot of a token; nil if it is none's. The lock is held.
func (tg *telegram) findBotByToken(token string) (*bot, *failure) {
	if !tg.acceptsCredential(token) {
		return nil, nil
	}
	for _, b := range tg.bots {
		if slices.Contains(b.tokens, token) {
			return b, nil
		}
	}
	username, _ := credentialOf(token)
	if !botUsername.MatchString(username) {
		return nil, nil
	}
	b, f := tg.findOrAddBot(username)
	if f != nil {
		return nil, f
	}
	return b, nil
}
