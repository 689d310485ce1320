package phone

// Reason is why a number was refused. The codes are stable: clients and metrics may rely on them.
type Reason string

// The reasons for refusal.
const (
	// ReasonEmpty: no digits at all.
	ReasonEmpty Reason = "empty"
	// ReasonTooLong: more than 32 characters after trimming, more than the 15 digits of E.164, or more than the country uses.
	ReasonTooLong Reason = "too_long"
	// ReasonTooShort: fewer digits than the country uses, such as short codes and numbers without their area code.
	ReasonTooShort Reason = "too_short"
	// ReasonNotDigits: a letter, a second plus, or a sign that is not a separator.
	ReasonNotDigits Reason = "not_digits"
	// ReasonNotASCII: a character outside ASCII that is no digit, dash, space or invisible mark.
	ReasonNotASCII Reason = "not_ascii"
	// ReasonControl: a control character, such as a tab or a line feed inside the number.
	ReasonControl Reason = "control_character"
	// ReasonURI: a scheme before the number, such as tel: or whatsapp:.
	ReasonURI Reason = "uri"
	// ReasonExtension: an extension after the number. No messenger account has one.
	ReasonExtension Reason = "extension"
	// ReasonNoCountryCode: it starts with zero, so it is in national format.
	ReasonNoCountryCode Reason = "no_country_code"
	// ReasonUnknownCountryCode: the first digits are not a country code.
	ReasonUnknownCountryCode Reason = "unknown_country_code"
	// ReasonInvalid: not in its country's numbering plan.
	ReasonInvalid Reason = "invalid_for_country"
	// ReasonPremiumRate: calling it costs the caller extra.
	ReasonPremiumRate Reason = "premium_rate"
	// ReasonAnonymous: a +888 number, sold by Fragment for Telegram accounts without a SIM; it is not a telephone line.
	ReasonAnonymous Reason = "anonymous"
	// ReasonNotSubscriber: a service, not a line that can hold a messenger account.
	ReasonNotSubscriber Reason = "not_a_subscriber"
	// ReasonMalformed: a messenger or a store returned something that is not an E.164 number.
	ReasonMalformed Reason = "malformed"
)

// Error is the refusal of a number. Its message is for the API's client: it explains what is wrong and how to fix it,
// and never holds any part of the number.
type Error struct {
	Reason  Reason
	message string
}

// Error returns the message for the client.
func (e *Error) Error() string { return e.message }

// Refusals are allocated once, so that invalid input costs no allocation.
var (
	errEmpty       = newError(ReasonEmpty, "no digits: give the phone number with its country code, digits only, with or without a leading plus")
	errInputLong   = newError(ReasonTooLong, "longer than 32 characters: give just one phone number with its country code")
	errDigitsLong  = newError(ReasonTooLong, "more than 15 digits, the most an international number has: remove what does not belong to the number")
	errCountryLong = newError(ReasonTooLong, "too many digits for its country code: check the country code and remove what does not belong to the number")
	errShort       = newError(ReasonTooShort, "too few digits for an international number: give country code, area code and number; short codes cannot be verified")
	errNotDigits   = newError(ReasonNotDigits, "a character that is not allowed: use the digits 0 to 9, one leading plus, and spaces, hyphens, dots, slashes or parentheses as separators")
	errNotASCII    = newError(ReasonNotASCII, "a character outside ASCII that stands for no digit, plus or separator: use the digits 0 to 9, one leading plus, and spaces or hyphens")
	errControl     = newError(ReasonControl, "a control character such as a tab or line feed: remove it")
	errURI         = newError(ReasonURI, "a scheme before the number, such as tel: or whatsapp: - give the bare number with its country code")
	errExtension   = newError(ReasonExtension, "an extension after the number: remove it, a messenger account belongs to the number itself")
	errNoCountry   = newError(ReasonNoCountryCode, "starts with zero: give the country code in place of the leading 0, 00 or +0")
	errUnknown     = newError(ReasonUnknownCountryCode, "starts with no known country code: put the country code before the national number")
	errInvalid     = newError(ReasonInvalid, "not a number in use in its country: check the country code and the digits")
	errPremium     = newError(ReasonPremiumRate, "a premium-rate number: give a mobile or landline number")
	errAnonymous   = newError(ReasonAnonymous, "an anonymous Telegram number (+888), which proves no telephone line: give the number of a telephone line")
	errService     = newError(ReasonNotSubscriber, "a service number that cannot hold a messenger account (international freephone or shared cost, pager, voicemail): give a mobile or landline number")
	errReported    = newError(ReasonMalformed, "the messenger reported something that is not an international phone number")
	errStored      = newError(ReasonMalformed, "the stored phone number is not in E.164 form")
)

func newError(r Reason, message string) *Error { return &Error{Reason: r, message: message} }
