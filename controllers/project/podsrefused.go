package project

import (
	"fmt"
	"regexp"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/render"
)

// findPodName returns what matches the name of a Deployment's pod, which is another one at each try. In a long one the last hyphen is
// cut off.
func findPodName(deployment string) *regexp.Regexp {
	return regexp.MustCompile(`(?i:\bpods? )?"?\b` + regexp.QuoteMeta(deployment) + `-[a-z0-9]{6,10}-?[a-z0-9]{5}\b"?`)
}

// findRefusal returns the blocker of pods that are missing because the API server refuses to create them; nil if none is. It waits, and
// after startDeadline, which is left from now on, it stalls if there are fewer pods than the project declares, and else is aside.
func (o outcome) findRefusal() (refused *blocker, left time.Duration) {
	failure := findFailure(o.deployment)
	if failure == nil || o.project.Suspended() || o.rolled {
		return nil, 0
	}
	number, what, state := o.deployment.Status.Replicas, "pods", rolloutOf(o.deployment)
	switch state {
	case unseen: // the failure may be of pods before the change
		ready := meta.FindStatusCondition(o.project.Status.Conditions, verifyv1.ConditionReady)
		if ready == nil || ready.Reason != verifyv1.ReasonPodsRefused {
			return nil, 0
		}
	case rolling, stuck:
		number, what = o.deployment.Status.UpdatedReplicas, "new pods"
	case paused:
		return nil, 0
	case rolledOut:
	}
	wanted := ptr.Deref(o.deployment.Spec.Replicas, 1)
	if number >= wanted {
		return nil, 0
	}
	refused = &blocker{waits, verifyv1.ReasonPodsRefused, fmt.Sprintf("%d of %d %s: the API server refuses to create the others: %s",
		number, wanted, what, findPodName(o.deployment.Name).ReplaceAllString(failure.Message, "a pod"))}
	left = max(0, failure.LastTransitionTime.Add(startDeadline).Sub(o.now))
	switch {
	case state == stuck, left == 0 && number < render.Replicas(o.project):
		refused.weight, left = stalls, 0
	case left == 0:
		refused.weight = aside
	}
	return refused, left
}

// findFailure returns the condition of a Deployment whose pods cannot be created; nil if they can.
func findFailure(deployment *appsv1.Deployment) *appsv1.DeploymentCondition {
	if deployment == nil {
		return nil
	}
	for i := range deployment.Status.Conditions {
		if c := &deployment.Status.Conditions[i]; c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// hasFormerPods reports whether pods of a former template run.
func hasFormerPods(deployment *appsv1.Deployment) bool {
	return deployment.Status.Replicas > deployment.Status.UpdatedReplicas
}
