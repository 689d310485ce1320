package v1alpha1

import (
	"fmt"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// textRule is the rule for one kind of string. Patterns and messages are those of
// the CRDs; a test compares the patterns.
type textRule struct {
	min, max int // in characters; min 0 means 1, because an empty text is unset
	pattern  *regexp.Regexp
	message  string
}

// lowerName is the pattern of object names: a lower-case DNS name.
const lowerName = `[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*`

const port = `(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?`

var (
	secretNameRule = textRule{max: 253, pattern: regexp.MustCompile(`^` + lowerName + `$`),
		message: "name must be the name of a Secret: lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit"}

	secretKeyRule = textRule{max: 253, pattern: regexp.MustCompile(`^\.?[-_a-zA-Z0-9][-._a-zA-Z0-9]*$`),
		message: "key must be a key of a Secret: letters, digits, '-', '_' and '.', and must not begin with '..'"}

	configMapNameRule = textRule{max: 253, pattern: secretNameRule.pattern,
		message: "name must be the name of a ConfigMap: lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit"}

	configMapKeyRule = textRule{max: 253, pattern: secretKeyRule.pattern,
		message: "key must be a key of a ConfigMap: letters, digits, '-', '_' and '.', and must not begin with '..'"}

	projectIDRule = textRule{max: 128, pattern: regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9._:/]*[A-Za-z0-9])?$`),
		message: "projectID must consist of letters, digits, '-', '_', '.', ':' and '/', and begin and end with a letter or digit"}

	displayNameRule = textRule{max: 64,
		pattern: regexp.MustCompile(`^[^\p{C}\p{Z}]([^\p{Cc}\x{2028}\x{2029}\x{202A}-\x{202E}\x{2066}-\x{2069}]*[^\p{C}\p{Z}])?$`),
		message: "displayName must be one line of plain text, without control characters, text-direction overrides, or spaces at either end"}

	// preparedNameRule is for displayName in a request, which is the project's name if the project has no displayName.
	preparedNameRule = textRule{max: 253, pattern: displayNameRule.pattern, message: displayNameRule.message}

	baseURLRule = textRule{max: 512,
		pattern: regexp.MustCompile(`^https?://(\[[0-9A-Fa-f:.]+\]|[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?(\.[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?)*)` +
			port + `(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*/?$`),
		message: "baseURL must be an http:// or https:// URL with a lower-case host (international names in punycode), an optional port and plain path, " +
			"and without user info, query or fragment, for example https://verify.example.com"}

	webhookURLRule = textRule{max: 2048,
		pattern: regexp.MustCompile(`^https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_]([-A-Za-z0-9_]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([-A-Za-z0-9_]*[A-Za-z0-9_])?)*)` +
			port + `(/([-A-Za-z0-9._~!$&()*+,;=:@/]|%[2-9A-Fa-f][0-9A-Fa-f])*)?(\?([-A-Za-z0-9._~!$&()*+,;=:@/?]|%[2-9A-Fa-f][0-9A-Fa-f])*)?$`),
		message: "url must be an http:// or https:// URL with a host (international names in punycode), without user info, fragment, " +
			"spaces or control characters, for example https://shop.example.com/hooks/phone"}

	testURLRule = textRule{max: webhookURLRule.max, pattern: webhookURLRule.pattern, message: "testURL must be an http:// or https:// " +
		"URL with a host (international names in punycode), without user info, fragment, spaces or control characters, " +
		"for example https://staging.example.com/hooks/phone"}

	keyNameRule = textRule{max: 63, pattern: regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`),
		message: "name must consist of lower-case letters, digits and '-', and begin and end with a letter or digit"}

	phoneNumberRule = textRule{min: 8, max: 16, pattern: regexp.MustCompile(`^\+[1-9][0-9]{6,14}$`),
		message: "phoneNumber must be in E.164: '+', country code and number, digits only, for example +15550100199"}

	phoneNumberIDRule = textRule{max: 32, pattern: regexp.MustCompile(`^[0-9]+$`),
		message: "phoneNumberID must be Meta's id of the number: digits only, in quotes"}

	businessAccountIDRule = textRule{max: 32, pattern: phoneNumberIDRule.pattern,
		message: "businessAccountID must be Meta's id of the WhatsApp Business account: digits only, in quotes"}

	botUsernameRule = textRule{min: 5, max: 32, pattern: regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*[Bb][Oo][Tt]$`),
		message: "botUsername must be the bot's username without '@': 5 to 32 letters, digits and '_', ending in bot, for example ada_books_bot"}

	replyRule = textRule{max: 1024,
		pattern: regexp.MustCompile(`^[^\x00-\x09\x0B-\x1F\x7F-\x{9F}\x{2028}\x{2029}\x{202A}-\x{202E}\x{2066}-\x{2069}]*$`),
		message: "replies must be plain text; line breaks are fine, other control characters and text-direction overrides are not"}

	textsRule = textRule{max: 1024, pattern: replyRule.pattern,
		message: "texts must be plain text; line breaks are fine, other control characters and text-direction overrides are not"}
	buttonRule = textRule{max: 20, pattern: displayNameRule.pattern,
		message: "titles of buttons must be one line of plain text, without spaces at either end"}
	preparedRule = textRule{min: 13, max: 300, pattern: referenceRule.pattern,
		message: "prepared must be one line of plain text, without control characters or text-direction overrides"}
	// placeOfCodeRule keeps what is part of a code to verification.CodeSpace.Extract away from one.
	placeOfCodeRule = textRule{max: 300, pattern: regexp.MustCompile(
		`^(.*[^0-9A-Za-z}\x{FF10}-\x{FF19}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\p{Cf}\p{Mn}])?[\p{Cf}\p{Mn}]*\{code\}` +
			`[\p{Cf}\p{Mn}]*([^0-9A-Za-z{\x{FF10}-\x{FF19}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\p{Cf}\p{Mn}].*)?$`),
		message: "prepared must have {code} apart from letters A to Z, digits and {name}, or the code would not be found"}
	textsLocaleRule = textRule{min: 2, max: 12, pattern: regexp.MustCompile(`^[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?$`),
		message: "locale must be a language, and a script or a region where needed, for example es, es-419, zh-Hant or pt-BR"}

	caBundleRule = textRule{max: 65536, pattern: regexp.MustCompile(`^[\t\n\r -~]*$`), message: caBundleMessage}

	hostRule = textRule{max: 253, pattern: regexp.MustCompile(`^` + lowerName + `$`),
		message: "host must be a DNS name in lower case, without port or wildcard, for example verify.example.com"}

	hostnameRule = textRule{max: 253, pattern: regexp.MustCompile(`^(\*\.)?` + lowerName + `$`),
		message: "hostnames must be DNS names in lower case, without a port, for example verify.example.com or *.example.com"}

	bodyHashRule = textRule{min: 32, max: 64, pattern: regexp.MustCompile(`^[0-9a-f]{32,64}$`),
		message: "bodyHash must be 32 to 64 lower-case hexadecimal digits of a SHA-256"}
	subjectHashRule = textRule{min: 24, max: 24, pattern: regexp.MustCompile(`^[0-9a-f]{24}$`),
		message: "subjectHash must be 24 lower-case hexadecimal digits"}

	returnURLRule = textRule{max: 2048, pattern: regexp.MustCompile(`^https?://[^\s\p{C}]+$`),
		message: "returnURL must be an https URL, or an http one of this machine"}
	browserRule = textRule{max: 32, pattern: regexp.MustCompile(`^[A-Z]+/[A-Z]+$`),
		message: "browser must be two words in capitals, for example CHROME/WINDOWS"}
	referenceRule = textRule{max: 128,
		pattern: regexp.MustCompile(`^[^\p{Cc}\x{2028}\x{2029}\x{202A}-\x{202E}\x{2066}-\x{2069}]*$`),
		message: "reference must be one line of plain text, without control characters or text-direction overrides"}
	localeRule = textRule{min: 2, max: 35, pattern: regexp.MustCompile(`^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$`),
		message: "locale must be a BCP 47 language tag, for example es or pt-BR"}
	metadataValuePattern = regexp.MustCompile(`^\P{Cc}*$`)
	metadataKeyPattern   = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

	// The schema has one rule for a whole map, not one for its keys and values.
	mapKeyPattern     = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)
	labelValuePattern = regexp.MustCompile(`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`)

	// Amounts as Quantity prints them. The CRD's patterns also allow the printed
	// form of every amount that they allow.
	cpuPattern    = regexp.MustCompile(`^([0-9]{1,4}(\.[0-9]{1,3})?|[0-9]{1,7}m)$`)
	memoryPattern = regexp.MustCompile(`^([0-9]{1,13}|[0-9]{1,4}(\.[0-9]{1,3})?[GT]i?|[0-9]{1,7}(\.[0-9]{1,3})?[MK]i|[0-9]{1,9}[kM])$`)
)

const (
	caBundleMessage = "caBundle must hold certificates in PEM form, from -----BEGIN CERTIFICATE----- to -----END CERTIFICATE-----; what begins with LS0t is the base64 of that: base64 --decode <FILE"
	maxMapKey       = 317 // a domain of 253 characters, a slash and a name of 63

	maxMetadata      = 16   // pairs
	maxMetadataKey   = 64   // characters
	maxMetadataBytes = 1024 // of all keys and values
)

// nameRule returns the rule for the name of another object.
func nameRule(fieldName, what string) textRule {
	return textRule{max: 253, pattern: secretNameRule.pattern,
		message: fieldName + " must be the name of " + what + ": lower-case letters, digits, '-' and '.'"}
}

// checkRequired returns an error for an empty text and for one that breaks the
// rule.
func (r textRule) checkRequired(path *field.Path, value string) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, r.message)}
	}
	return r.checkOptional(path, value)
}

// checkOptional returns an error for a set text that breaks the rule. The error
// does not repeat a text that is too long.
func (r textRule) checkOptional(path *field.Path, value string) field.ErrorList {
	if value == "" {
		return nil
	}
	length := utf8.RuneCountInString(value)
	switch {
	case length > r.max:
		return field.ErrorList{field.TooLong(path, "", r.max)}
	case length < r.min, !r.pattern.MatchString(value):
		return field.ErrorList{field.Invalid(path, value, r.message)}
	}
	return nil
}

// checkDuration returns an error for a set duration that is malformed or out of
// range.
func checkDuration(path *field.Path, d Duration, shortest, longest time.Duration, message string) field.ErrorList {
	if d == "" {
		return nil
	}
	parsed, err := d.Parse()
	if err != nil || parsed < shortest || parsed > longest {
		return field.ErrorList{field.Invalid(path, d, message)}
	}
	return nil
}

// checkUpTo returns an error for a set number that is not between 1 and highest.
func checkUpTo(path *field.Path, n *int32, highest int32) field.ErrorList {
	if n != nil && (*n < 1 || *n > highest) {
		return field.ErrorList{field.Invalid(path, *n, fmt.Sprintf("must be between 1 and %d", highest))}
	}
	return nil
}

// checkOneOf returns an error for a set value that is not allowed.
func checkOneOf[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

// checkAtMost returns an error for a list that is too long.
func checkAtMost(path *field.Path, length, most int) field.ErrorList {
	if length > most {
		return field.ErrorList{field.TooMany(path, length, most)}
	}
	return nil
}
