package phone

// A messenger's server reports the numbers of its own accounts, so only their shape is checked: libphonenumber rejects
// numbers that WhatsApp uses every day (+52 1). Nothing is stripped or converted, because a value with anything around
// its digits is not the one that the platform documents.

// ParseWhatsApp parses a wa_id (or `from`) of the Cloud API: 5 to 15 digits, the first not zero. Since WhatsApp has
// usernames, a business-scoped user id can take the place of a number; that and everything else is refused, and means
// no number.
func ParseWhatsApp(waID string) (Number, error) { return parseReported(waID, minDigits) }

// ParseTelegram parses contact.phone_number of the Bot API: 7 to 15 digits, the first not zero, with or without a plus;
// Telegram sends both.
func ParseTelegram(contactPhone string) (Number, error) {
	if len(contactPhone) > 0 && contactPhone[0] == '+' {
		contactPhone = contactPhone[1:]
	}
	return parseReported(contactPhone, 7)
}

func parseReported(digits string, atLeast int) (Number, error) {
	n, ok := fromDigits(digits)
	if !ok || n.countDigits() < atLeast {
		return Number{}, errReported
	}
	if code, _ := n.countryCode(); code == 0x888 {
		return Number{}, errAnonymous
	}
	return n, nil
}
