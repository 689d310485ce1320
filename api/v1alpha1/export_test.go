package v1alpha1

// Patterns returns every pattern that Validate uses and the CRDs repeat in
// their rules. Those of quantities stand in the CRDs as plain patterns.
func Patterns() []string {
	patterns := []string{durationPattern.String(), mapKeyPattern.String(), labelValuePattern.String()}
	for _, rule := range []textRule{
		secretNameRule, secretKeyRule, projectIDRule, displayNameRule, baseURLRule, webhookURLRule, keyNameRule, phoneNumberRule,
		phoneNumberIDRule, botUsernameRule, replyRule, caBundleRule, hostnameRule, bodyHashRule, subjectHashRule,
	} {
		patterns = append(patterns, rule.pattern.String())
	}
	return patterns
}
