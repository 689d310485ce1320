package doctor

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/messenger/whatsapp"
)

// The conditions of the messengers.
const (
	whatsAppReady = verifyv1.ConditionWhatsAppReady
	telegramReady = verifyv1.ConditionTelegramReady
)

// platformChecks are about the messengers, by the platforms' own answers if they were asked, else by the project's conditions.
func platformChecks() []check {
	return []check{
		{
			name: "AppSecretOfOtherApp", problem: "the app secret is that of another Meta app, so every message from WhatsApp is refused",
			remedy: "put the *App Secret* of the app that the access token belongs to into the Secret of `spec.whatsapp.appSecretRef`",
			find:   findOtherAppSecret,
		},
		{
			name: "AppNotSubscribed", problem: "the Meta app is not subscribed to the WhatsApp Business account, so no message arrives",
			remedy: "set `spec.whatsapp.registerWebhook: true`, or run the command of the evidence with an access token that has the permission whatsapp_business_management",
			find:   onReasons(whatsAppReady, verifyv1.ReasonNotSubscribed),
		},
		{
			name: "AccessTokenRejected", problem: "Meta refuses the access token: it has expired, was revoked, or lacks a permission",
			remedy: "make one of a system user with whatsapp_business_messaging and whatsapp_business_management, and put it into the Secret of `spec.whatsapp.accessTokenSecretRef`",
			find:   onWhatsApp(verifyv1.ReasonCredentialsRejected),
		},
		{
			name: "NumberOfOtherAccount", problem: "`spec.whatsapp` names a number of another account than the access token's",
			remedy: "compare `spec.whatsapp.phoneNumberID`, `phoneNumber` and `businessAccountID` with the WhatsApp Manager, and correct one",
			find:   onWhatsApp(verifyv1.ReasonAccountMismatch),
		},
		{
			name: "BotTokenRejected", problem: "Telegram refuses the bot's token",
			remedy: "put the token that BotFather shows into the Secret of `spec.telegram.botTokenSecretRef`",
			find:   onReasons(telegramReady, verifyv1.ReasonCredentialsRejected),
		},
		{
			name: "TokenOfOtherBot", problem: "the token is another bot's than `spec.telegram.botUsername`",
			remedy: "correct `spec.telegram.botUsername`, or the Secret of `spec.telegram.botTokenSecretRef`",
			find:   onReasons(telegramReady, verifyv1.ReasonAccountMismatch),
		},
		{
			name: "CallbackTaken", problem: "another program has the messenger's messages: its callback is registered, or it fetches the bot's updates",
			remedy: "stop that program, or have `spec.whatsapp.takeOver` or `spec.telegram.takeOver` be true until it is replaced",
			find:   onEitherMessenger(metav1.ConditionFalse, verifyv1.ReasonCallbackTaken),
		},
		{
			name: "CallbackNotRegistered", problem: "the messenger does not deliver to this project",
			remedy: "a pod registers the callback: see why none does in `kubectl -n NAMESPACE logs deploy/phoneproof-PROJECT --all-pods`",
			find: func(f *Facts) []evidence {
				if !f.Asked.Read { // a status that says so is of a moment
					return nil
				}
				return onEitherMessenger(metav1.ConditionUnknown, verifyv1.ReasonRegistering)(f)
			},
		},
		{
			name: "CallbackUnreachable", problem: "the messenger cannot reach `spec.baseURL`",
			remedy: "correct what else is found about `spec.baseURL`; from the internet `curl -i BASEURL/hooks/whatsapp` must answer 403 with a certificate that browsers trust",
			find:   onEitherMessenger(metav1.ConditionFalse, verifyv1.ReasonCallbackUnreachable),
		},
		{
			name: "PlatformUnreachable", problem: "the pods do not reach the messenger's platform",
			remedy: "allow them egress to graph.facebook.com, api.telegram.org and, for codes, gatewayapi.telegram.org on TCP 443: `kubectl -n NAMESPACE get networkpolicy`, and look at proxies and firewalls",
			find:   onEitherMessenger(metav1.ConditionFalse, verifyv1.ReasonPlatformUnreachable),
		},
		{
			name: "PlatformFails", problem: "the messenger's platform answers with failures",
			remedy: "wait, and look at its status page and at proxies between; the pods try again: `kubectl -n NAMESPACE describe vproj PROJECT`",
			find:   onEitherMessenger(metav1.ConditionFalse, verifyv1.ReasonPlatformFailing),
		},
		{
			name: "Silent", problem: "WhatsApp requests expire and no message of a user arrives",
			remedy: "open a link of your own, then go through docs/runbook.md, \"Silent\": `kubectl phoneproof -n NAMESPACE doctor PROJECT --ask-platforms` checks the subscription and the app secret; raise `spec.whatsapp.silentAfter` where silence is usual",
			find:   onBadReasons(verifyv1.ConditionSilent, metav1.ConditionTrue, verifyv1.ReasonNoMessages),
		},
	}
}

// findOtherAppSecret returns Meta's word that the secret is another app's or, if Meta was not asked, what the pods counted. A stranger can
// post with a made-up signature, so such posts alone are no evidence: there must also be users who began, of whom no message is accepted.
func findOtherAppSecret(f *Facts) []evidence {
	const least = 3 // Meta posts a refused message again and again
	counts := f.Callbacks.Value
	switch {
	case f.Asked.Value.OtherAppSecret:
		return see("Meta reports that the secret is not that of the access token's app")
	case f.Asked.Read || counts.Accepted > 0 || counts.Refused < least || counts.Started == 0:
		return nil
	default:
		return see(fmt.Sprintf("since the pods began, %.0f verifications by WhatsApp were started, and of the posts to %s none was signed with the "+
			"secret and %.0f with another; strangers could have made them up: --ask-platforms asks Meta", counts.Started, whatsapp.Path, counts.Refused))
	}
}
