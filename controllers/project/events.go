package project

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/note"
)

// troubles are the reasons of Ready and Stalled that the operator tells an Event of. What it folds is serve's to tell.
var troubles = []string{
	verifyv1.ReasonInvalidSpec, verifyv1.ReasonNotPermitted, verifyv1.ReasonAccountInUse, verifyv1.ReasonHostInUse,
	verifyv1.ReasonConflict,
	verifyv1.ReasonChildRejected, verifyv1.ReasonGatewayAPIMissing, verifyv1.ReasonPodsUnavailable, verifyv1.ReasonRolloutStuck,
}

// telling is an Event about a project.
type telling struct {
	kind   string
	reason string
	note   string
}

// transition returns the Event of a change from one list of conditions to another; nil if there is nothing to tell. The
// usual way up is not told: the conditions say it, with their times.
func transition(before, after []metav1.Condition) *telling {
	old, now := foremost(before), foremost(after)
	switch same := old.Reason == now.Reason; {
	case slices.Contains(troubles, now.Reason) && (!same || old.Message != now.Message):
		return &telling{corev1.EventTypeWarning, now.Reason, note.Fit(now.Message)}
	case now.Reason == verifyv1.ReasonSuspended && !same:
		return &telling{corev1.EventTypeNormal, now.Reason, note.Fit(now.Message)}
	case slices.Contains(troubles, old.Reason) && !same:
		return &telling{corev1.EventTypeNormal, now.Reason, old.Reason + " is over"}
	default:
		return nil
	}
}

// foremost returns the condition that says what somebody has to do: Stalled, or else Ready, which may repeat serve's.
func foremost(list []metav1.Condition) metav1.Condition {
	for _, name := range []string{verifyv1.ConditionStalled, verifyv1.ConditionReady} {
		if c := meta.FindStatusCondition(list, name); c != nil {
			return *c
		}
	}
	return metav1.Condition{}
}

// newlyShared returns the Event of a project that has begun to share an account or a host; nil if it has not.
func newlyShared(before, after []metav1.Condition) *telling {
	now := meta.FindStatusCondition(after, verifyv1.ConditionShared)
	if now == nil || meta.FindStatusCondition(before, verifyv1.ConditionShared) != nil {
		return nil
	}
	return &telling{corev1.EventTypeWarning, now.Reason, note.Fit(now.Message)}
}
