package doctor

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// currentCondition returns a condition: by the platform's own answer if it was asked, else the project's; nil if there is none.
func currentCondition(f *Facts, conditionType string) (condition *metav1.Condition, source string) {
	if c := meta.FindStatusCondition(f.Asked.Value.Conditions, conditionType); c != nil {
		return c, "asked just now"
	}
	c := meta.FindStatusCondition(f.Project.Status.Conditions, conditionType)
	if c != nil && c.ObservedGeneration < f.Project.Generation {
		return c, fmt.Sprintf("of generation %d, the project is at %d", c.ObservedGeneration, f.Project.Generation)
	}
	return c, ""
}

// findBadReasons returns the condition as evidence if it has that status and one of the reasons.
func findBadReasons(f *Facts, conditionType string, status metav1.ConditionStatus, reasons ...string) []evidence {
	c, source := currentCondition(f, conditionType)
	if c == nil || c.Status != status || !slices.Contains(reasons, c.Reason) {
		return nil
	}
	text := fmt.Sprintf("%s is %s, %s: %s", c.Type, c.Status, c.Reason, c.Message)
	if source != "" {
		text += " (" + source + ")"
	}
	return []evidence{{text: text, reason: c.Reason}}
}

// findReasons returns the condition as evidence if it is False for one of the reasons.
func findReasons(f *Facts, conditionType string, reasons ...string) []evidence {
	return findBadReasons(f, conditionType, metav1.ConditionFalse, reasons...)
}

// onReasons and onBadReasons make checks of a condition.
func onReasons(conditionType string, reasons ...string) func(*Facts) []evidence {
	return onBadReasons(conditionType, metav1.ConditionFalse, reasons...)
}

func onBadReasons(conditionType string, status metav1.ConditionStatus, reasons ...string) func(*Facts) []evidence {
	return func(f *Facts) []evidence { return findBadReasons(f, conditionType, status, reasons...) }
}

// onEitherMessenger makes a check of the conditions of both messengers.
func onEitherMessenger(status metav1.ConditionStatus, reason string) func(*Facts) []evidence {
	return func(f *Facts) []evidence {
		return slices.Concat(findBadReasons(f, whatsAppReady, status, reason), findBadReasons(f, telegramReady, status, reason))
	}
}
