package doctor

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// codesReady is the condition of the template that carries codes.
const codesReady = verifyv1.ConditionCodesReady

// codeChecks are about codes through WhatsApp, by Meta's own answer if it was asked, else by the project's conditions.
func codeChecks() []check {
	return []check{
		{
			name: "TemplateMissing", problem: "the WhatsApp Business account has no template of the name in `spec.whatsapp.codes`, so no code is sent",
			remedy: "create it as docs/channels.md, \"Codes through WhatsApp\", shows, or correct `spec.whatsapp.codes.templateName`",
			find:   onReasons(codesReady, verifyv1.ReasonTemplateMissing),
		},
		{
			name: "TemplateLanguageMissing", problem: "the template of codes lacks a language, so users of that language get no code",
			remedy: "add the language to the template in the WhatsApp Manager, or take it out of `spec.whatsapp.codes.languages`",
			find:   onReasons(codesReady, verifyv1.ReasonTemplateLanguageMissing),
		},
		{
			name: "TemplateNotApproved", problem: "Meta has not approved the template of codes, or has paused or disabled it, so no code is sent",
			remedy: "look at the template in the WhatsApp Manager: it says why, and since when; until then name another one in `spec.whatsapp.codes.templateName`",
			find:   onReasons(codesReady, verifyv1.ReasonTemplateNotApproved),
		},
		{
			name: "TemplateUnfit", problem: "the template of codes is not of category AUTHENTICATION, or its button does not copy the code",
			remedy: "neither can be changed: create another template as docs/channels.md, \"Codes through WhatsApp\", shows, and name it in `spec.whatsapp.codes.templateName`",
			find:   onReasons(codesReady, verifyv1.ReasonTemplateWrongCategory, verifyv1.ReasonTemplateWithoutButton),
		},
		{
			name: "TemplateArrivesLate", problem: "Meta may deliver a code after its request has ended, and you pay for it",
			remedy: "lower `message_send_ttl_seconds` of the template, or raise `spec.request.ttl`, which may be 15m with codes",
			find:   onReasons(codesReady, verifyv1.ReasonTemplateTTLTooLong),
		},
		{
			name: "TemplateQualityLow", problem: "users block or report the template of codes, and Meta may pause it",
			remedy: "have codes sent only to users who ask for them: lower `spec.rateLimit.perSubject` and `spec.rateLimit.perPrefix`, and look for strangers' numbers",
			find:   onReasons(codesReady, verifyv1.ReasonTemplateQualityLow),
		},
		{
			name: "TemplateUnchecked", problem: "whether the template of codes can be sent is not known",
			remedy: "set `spec.whatsapp.businessAccountID`, and give the access token's system user whatsapp_business_management for that account",
			find:   onBadReasons(codesReady, metav1.ConditionUnknown, verifyv1.ReasonTemplateUnchecked),
		},
		{
			name: "CodesHalfUsed", problem: "an API key has had half of its share of codes sent within a day; at its end init answers `codes_limited`",
			remedy: "see who starts them: `kubectl phoneproof -n NAMESPACE requests list PROJECT`; replace a leaked key by `kubectl phoneproof -n NAMESPACE rotate api-key PROJECT NAME`, or raise `spec.whatsapp.codes.maxPerDay`",
			find:   onBadReasons(verifyv1.ConditionCodesLimited, metav1.ConditionTrue, verifyv1.ReasonCodesHalfUsed),
		},
	}
}

// onWhatsApp makes a check of the conditions of WhatsApp's messages and of its codes.
func onWhatsApp(reason string) func(*Facts) []evidence {
	return func(f *Facts) []evidence {
		return slices.Concat(findReasons(f, whatsAppReady, reason), findReasons(f, codesReady, reason))
	}
}
