package project

import (
	"strings"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// accountIndex finds the projects that name a messenger account.
const accountIndex = "phoneproof.dev/account"

// The messengers, as account names begin.
const (
	whatsAppPrefix = "whatsapp:"
	telegramPrefix = "telegram:"
)

// accounts returns the messenger accounts of a project, as they stand in the index, in claims and in grants. Telegram's
// usernames are the same in any case.
func accounts(spec *verifyv1.VerificationProjectSpec) []string {
	var out []string
	if spec.WhatsApp != nil {
		out = append(out, whatsAppPrefix+spec.WhatsApp.PhoneNumberID)
	}
	if spec.Telegram != nil {
		out = append(out, telegramPrefix+strings.ToLower(spec.Telegram.BotUsername))
	}
	return out
}

// accountField returns the field of the spec in which an account stands.
func accountField(account string) string {
	if strings.HasPrefix(account, whatsAppPrefix) {
		return "spec.whatsapp.phoneNumberID"
	}
	return "spec.telegram.botUsername"
}
