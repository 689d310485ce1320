package v1alpha1

// Patterns returns the patterns of Validate that the CRDs repeat in their rules.
// Quantities have plain patterns in the CRDs.
func Patterns() []string {
	patterns := []string{durationPattern.String(), securePattern.String(), mapKeyPattern.String(), labelValuePattern.String(), metadataKeyPattern.String(), metadataValuePattern.String()}
	for _, rule := range []textRule{
		secretNameRule, secretKeyRule, projectIDRule, displayNameRule, baseURLRule, webhookURLRule, keyNameRule, phoneNumberRule,
		phoneNumberIDRule, botUsernameRule, replyRule, caBundleRule, hostnameRule, bodyHashRule, subjectHashRule, returnURLRule,
		referenceRule, localeRule, textsLocaleRule, placeOfCodeRule, returnURLsRule, frameAncestorsRule, accentColorRule, browserRule,
		templateNameRule, templateLanguageRule, countryRule, creatorRule, senderUsernameRule,
	} {
		patterns = append(patterns, rule.pattern.String())
	}
	return patterns
}

// IsCountry reports whether allowedCountries may have a code.
func IsCountry(code string) bool { return countryRule.pattern.MatchString(code) }
