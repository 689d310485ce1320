package projectstatus

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// served lists the types of the conditions that serve maintains, in the order in which they are written.
var served = []string{
	verifyv1.ConditionSecretsReady, verifyv1.ConditionStorageReady, verifyv1.ConditionWhatsAppReady,
	verifyv1.ConditionTelegramReady, verifyv1.ConditionWebhookHealthy, verifyv1.ConditionSilent, verifyv1.ConditionSimulated,
	verifyv1.ConditionLimitsContradict, verifyv1.ConditionTestEventsOff, verifyv1.ConditionCodesReady, verifyv1.ConditionCodesLimited,
	verifyv1.ConditionGatewayReady,
}

// observation is the input of judgeConditions.
type observation struct {
	settings *settings.Settings
	learned  learned
	present  []metav1.Condition // of our types, as in the project's status
}

// judgeConditions returns the conditions that the project should have.
func judgeConditions(o observation, now metav1.Time) []metav1.Condition {
	said := o.learned.conditions
	say := func(condition metav1.Condition) {
		condition.ObservedGeneration = o.settings.Generation
		said[condition.Type] = &condition
	}
	say(secretsReady(o.settings.Problems))
	say(conditionTrue(verifyv1.ConditionSimulated, verifyv1.ReasonSimulatorCredentials,
		"credentials begin with sim_, so nothing here is true of a real phone"))
	say(conditionTrue(verifyv1.ConditionLimitsContradict, verifyv1.ReasonKeysFillStore,
		o.settings.LimitsContradiction+". To remove it, run: "+o.settings.LimitsCommand))
	say(conditionTrue(verifyv1.ConditionTestEventsOff, verifyv1.ReasonTestSecretUnset,
		"spec.webhook.testURL is set without testSecretRef, so no event of a test key is sent; name a secret there that signs no real events"))
	if o.settings.Webhook != nil {
		say(webhookHealthy(o.settings, o.learned.receiver, meta.FindStatusCondition(o.present, verifyv1.ConditionWebhookHealthy)))
	}
	if v := o.learned.storage; v != nil {
		condition := conditionFalse(verifyv1.ConditionStorageReady, v.reason, v.message)
		if v.isGood() {
			condition.Status = metav1.ConditionTrue
		}
		say(condition)
	}
	var wanted []metav1.Condition
	for _, conditionType := range served {
		present := meta.FindStatusCondition(o.present, conditionType)
		condition, judged := said[conditionType]
		if !judged {
			condition = present
		}
		if condition == nil || !isApplicable(o.settings, conditionType) {
			continue
		}
		wanted = append(wanted, withTransitionTime(*condition, present, now))
	}
	return wanted
}

// isApplicable reports whether a project with these settings has a condition of that type.
func isApplicable(s *settings.Settings, conditionType string) bool {
	switch conditionType {
	case verifyv1.ConditionWhatsAppReady, verifyv1.ConditionSilent:
		return s.WhatsApp != nil
	case verifyv1.ConditionCodesReady:
		return s.WhatsApp != nil && s.WhatsApp.Codes != nil
	case verifyv1.ConditionGatewayReady:
		return s.Telegram != nil && s.Telegram.Codes != nil
	case verifyv1.ConditionCodesLimited:
		return isApplicable(s, verifyv1.ConditionCodesReady) || isApplicable(s, verifyv1.ConditionGatewayReady)
	case verifyv1.ConditionTelegramReady:
		return s.Telegram != nil
	case verifyv1.ConditionWebhookHealthy:
		return s.Webhook != nil
	case verifyv1.ConditionSimulated:
		return s.Simulated
	case verifyv1.ConditionLimitsContradict:
		return s.LimitsContradiction != ""
	case verifyv1.ConditionTestEventsOff:
		return s.Webhook != nil && s.Webhook.TestUnsigned
	default:
		return true
	}
}

// withTransitionTime returns the condition with the time of its last transition.
func withTransitionTime(condition metav1.Condition, present *metav1.Condition, now metav1.Time) metav1.Condition {
	condition.LastTransitionTime = now
	if present != nil && present.Status == condition.Status {
		condition.LastTransitionTime = present.LastTransitionTime
	}
	return condition
}

// servedConditions returns the conditions of our types, in the order in which they are written.
func servedConditions(conditions []metav1.Condition) []metav1.Condition {
	var found []metav1.Condition
	for _, conditionType := range served {
		if condition := meta.FindStatusCondition(conditions, conditionType); condition != nil {
			found = append(found, *condition)
		}
	}
	return found
}

// equalConditions reports whether two lists in that order are equal.
func equalConditions(a, b []metav1.Condition) bool {
	return slices.EqualFunc(a, b, func(a, b metav1.Condition) bool {
		equal := a.LastTransitionTime.Equal(&b.LastTransitionTime)
		a.LastTransitionTime, b.LastTransitionTime = metav1.Time{}, metav1.Time{}
		return equal && a == b
	})
}

// findTransitions returns the conditions to report: those with a known status that differs from before, and of new conditions only
// the bad ones.
func findTransitions(before, now []metav1.Condition) []metav1.Condition {
	var changed []metav1.Condition
	for _, condition := range now {
		old := meta.FindStatusCondition(before, condition.Type)
		switch {
		case condition.Status == metav1.ConditionUnknown:
		case old == nil && !isBad(condition):
		case old == nil || old.Status != condition.Status:
			changed = append(changed, condition)
		}
	}
	return changed
}

// warnings are the types of the conditions that need attention if they are True.
var warnings = []string{
	verifyv1.ConditionSilent, verifyv1.ConditionSimulated, verifyv1.ConditionLimitsContradict, verifyv1.ConditionTestEventsOff,
	verifyv1.ConditionCodesLimited,
}

// isBad reports whether a condition needs attention.
func isBad(condition metav1.Condition) bool {
	return (condition.Status == metav1.ConditionTrue) == slices.Contains(warnings, condition.Type)
}

func conditionTrue(conditionType, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

func conditionFalse(conditionType, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}
