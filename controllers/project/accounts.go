package project

import (
	"strings"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// accountIndex is the index of projects by their messenger accounts.
const accountIndex = "phoneproof.dev/account"

// Prefixes of account names, by messenger.
const (
	whatsAppPrefix = "whatsapp:"
	telegramPrefix = "telegram:"
)

// listAccounts returns the messenger accounts of a project, as in the index, in claims and in grants. Telegram's usernames are
// case-insensitive.
func listAccounts(spec *verifyv1.VerificationProjectSpec) []string {
	var out []string
	if spec.WhatsApp != nil {
		out = append(out, whatsAppPrefix+spec.WhatsApp.PhoneNumberID)
	}
	if spec.Telegram != nil {
		out = append(out, telegramPrefix+strings.ToLower(spec.Telegram.BotUsername))
	}
	return out
}

// accountField returns the field of the spec that holds an account.
func accountField(account string) string {
	if strings.HasPrefix(account, whatsAppPrefix) {
		return "spec.whatsapp.phoneNumberID"
	}
	return "spec.telegram.botUsername"
}
