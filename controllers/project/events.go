package project

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers"
)

// reportedReasons are the reasons of Ready and Stalled that the operator emits an Event for. For conditions of serve, serve does.
var reportedReasons = []string{
	verifyv1.ReasonInvalidSpec, verifyv1.ReasonNotPermitted, verifyv1.ReasonAccountInUse, verifyv1.ReasonHostInUse,
	verifyv1.ReasonConflict,
	verifyv1.ReasonChildRejected, verifyv1.ReasonGatewayAPIMissing, verifyv1.ReasonPodsUnavailable, verifyv1.ReasonRolloutStuck,
	verifyv1.ReasonPodsRefused,
}

// projectEvent is an Event about a project.
type projectEvent struct {
	kind   string
	reason string
	note   string
}

// findTransition returns the Event for a change from one list of conditions to another; nil if there is none. The usual way to
// Ready has no Event, because the conditions report it with their times.
func findTransition(before, after []metav1.Condition) *projectEvent {
	old, now := mainCondition(before), mainCondition(after)
	switch same := old.Reason == now.Reason; {
	case now.Reason == verifyv1.ReasonPodsRefused && same: // only its numbers change
		return nil
	case slices.Contains(reportedReasons, now.Reason) && (!same || old.Message != now.Message):
		return &projectEvent{corev1.EventTypeWarning, now.Reason, controllers.FitNote(now.Message)}
	case now.Reason == verifyv1.ReasonSuspended && !same:
		return &projectEvent{corev1.EventTypeNormal, now.Reason, controllers.FitNote(now.Message)}
	case slices.Contains(reportedReasons, old.Reason) && !same:
		return &projectEvent{corev1.EventTypeNormal, now.Reason, old.Reason + " is over"}
	default:
		return nil
	}
}

// mainCondition returns the condition that needs action: Stalled, or else Ready. Where Ready repeats one of serve's, it is Reconciling if
// pods are refused, and Available if no pod answers and none is being started.
func mainCondition(list []metav1.Condition) metav1.Condition {
	for _, name := range []string{
		verifyv1.ConditionStalled, verifyv1.ConditionReady, verifyv1.ConditionReconciling, verifyv1.ConditionAvailable,
	} {
		c := meta.FindStatusCondition(list, name)
		starting := name == verifyv1.ConditionAvailable && meta.IsStatusConditionTrue(list, verifyv1.ConditionReconciling)
		if c != nil && slices.Contains(reportedReasons, c.Reason) && !starting {
			return *c
		}
	}
	return ptr.Deref(meta.FindStatusCondition(list, verifyv1.ConditionReady), metav1.Condition{})
}

// newlyShared returns the Event of a project that has begun to share an account or a host; nil if it has not.
func newlyShared(before, after []metav1.Condition) *projectEvent {
	now := meta.FindStatusCondition(after, verifyv1.ConditionShared)
	if now == nil || meta.FindStatusCondition(before, verifyv1.ConditionShared) != nil {
		return nil
	}
	return &projectEvent{corev1.EventTypeWarning, now.Reason, controllers.FitNote(now.Message)}
}
