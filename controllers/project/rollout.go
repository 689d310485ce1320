package project

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
)

// rollout is the state of the pods of a Deployment with respect to its template.
type rollout int

const (
	// rolledOut: every pod is from the current template. Pods that fail later do not change that.
	rolledOut rollout = iota
	// rolling: new pods replace old ones.
	rolling
	// stuck: new pods did not become ready in time. The old ones stay.
	stuck
	// paused: the Deployment was paused while new pods are due.
	paused
	// unseen: the Deployment was changed, perhaps only in its number of replicas, and its controller has not observed that yet.
	unseen
)

// Reasons of a Deployment's condition Progressing, as its controller sets them.
const (
	reasonRolledOut = "NewReplicaSetAvailable"
	reasonStuck     = "ProgressDeadlineExceeded"
)

// rolloutOf returns the state of a rollout by the Deployment's status. The condition Progressing distinguishes a rollout from
// other changes of pods, such as those of an autoscaler.
func rolloutOf(deployment *appsv1.Deployment) rollout {
	if deployment == nil {
		return rolling
	}
	if ptr.Deref(deployment.Spec.Replicas, 1) == 0 {
		return rolledOut
	}
	reason := ""
	for _, condition := range deployment.Status.Conditions {
		if condition.Type == appsv1.DeploymentProgressing {
			reason = condition.Reason
		}
	}
	seen := deployment.Status.ObservedGeneration >= deployment.Generation
	switch {
	case deployment.Spec.Paused && seen && deployment.Status.UpdatedReplicas >= deployment.Status.Replicas:
		return rolledOut // nothing is held up, whatever the condition reports about the pause
	case deployment.Spec.Paused:
		return paused
	case !seen && reason == reasonRolledOut:
		return unseen
	case !seen:
		return rolling
	case reason == reasonRolledOut:
		return rolledOut
	case reason == reasonStuck:
		return stuck
	default:
		return rolling
	}
}

// isAvailable reports whether a pod answers.
func isAvailable(deployment *appsv1.Deployment) bool {
	return deployment != nil && deployment.Status.AvailableReplicas > 0
}

// isUnderway reports whether a Deployment gets new pods, or may be about to.
func isUnderway(deployment *appsv1.Deployment) bool {
	state := rolloutOf(deployment)
	return state == rolling || state == unseen
}
