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
			name: "TemplateUnfit", problem: "the template of codes is not as it must be: codes are not sent, arrive late, or soon stop",
			remedy: "do what the evidence says, to the template or to `spec.whatsapp.codes`; docs/channels.md, \"Codes through WhatsApp\", shows how to create one",
			find: onReasons(codesReady, verifyv1.ReasonTemplateMissing, verifyv1.ReasonTemplateLanguageMissing, verifyv1.ReasonTemplateNotApproved,
				verifyv1.ReasonTemplateWrongCategory, verifyv1.ReasonTemplateWithoutButton, verifyv1.ReasonTemplateTTLTooLong,
				verifyv1.ReasonTemplateQualityLow),
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
