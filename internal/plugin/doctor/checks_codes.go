package doctor

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// codesReady is the condition of the template that carries codes.
const codesReady = verifyv1.ConditionCodesReady

// gatewayReady is the condition of the answers of Telegram's Gateway.
const gatewayReady = verifyv1.ConditionGatewayReady

// codeChecks are about codes: those of WhatsApp by Meta's own answer if it was asked, else by the project's conditions.
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
			remedy: "see who starts them: `kubectl phoneproof -n NAMESPACE requests list PROJECT`, which leaves out deliveries; replace a leaked key as docs/runbook.md, \"A key leaked\", says, or raise `maxPerDay` of `spec.whatsapp.codes` or `spec.telegram.codes`",
			find:   onBadReasons(verifyv1.ConditionCodesLimited, metav1.ConditionTrue, verifyv1.ReasonCodesHalfUsed),
		},
		{
			name: "GatewayRefuses", problem: "Telegram's Gateway refuses the token or the sender, so it sends no codes",
			remedy: "correct what the evidence names in `spec.telegram.codes` or its Secret; the condition changes with the next code",
			find:   onReasons(gatewayReady, verifyv1.ReasonCredentialsRejected, verifyv1.ReasonSenderRejected),
		},
		{
			name: "GatewayBalanceLow", problem: "the balance at Telegram's Gateway is spent, or does not pay for `maxPerDay` codes",
			remedy: "add funds at gateway.telegram.org, or lower `spec.telegram.codes.maxPerDay`",
			find: func(f *Facts) []evidence {
				return slices.Concat(findReasons(f, gatewayReady, verifyv1.ReasonBalanceEmpty), findLowBalance(f))
			},
		},
	}
}

// codePrice is about what a code through Telegram costs, in US dollars.
const codePrice = 0.01

// findLowBalance compares the last balance that a pod heard of with what the project may spend in a day. The Gateway shows it in its answers
// to codes alone, so it may be old.
func findLowBalance(f *Facts) []evidence {
	counts, wanted := f.Callbacks.Value, codePrice*float64(f.Project.Spec.Telegram.CodesPerDay())
	if counts.BalanceAt.IsZero() || counts.Balance >= wanted {
		return nil
	}
	return see(fmt.Sprintf("the last answer, %s ago, had a balance of %.2f US dollars, and maxPerDay codes cost about %.2f",
		f.Now.Sub(counts.BalanceAt).Round(time.Minute), counts.Balance, wanted))
}

// onWhatsApp makes a check of the conditions of WhatsApp's messages and of its codes.
func onWhatsApp(reason string) func(*Facts) []evidence {
	return func(f *Facts) []evidence {
		return slices.Concat(findReasons(f, whatsAppReady, reason), findReasons(f, codesReady, reason))
	}
}
