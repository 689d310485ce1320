package project

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
)

// rollout is how far the pods of a Deployment are on their way to its template.
type rollout int

const (
	// rolledOut: every pod is made from the present template. Pods that fail later do not change that.
	rolledOut rollout = iota
	// rolling: new pods take the place of old ones.
	rolling
	// stuck: new pods did not become ready in the time that they have. The old ones go on.
	stuck
	// paused: somebody paused the Deployment, and new pods are due.
	paused
	// unseen: the Deployment was changed, perhaps in its number of replicas alone, and the cluster has not looked at it.
	unseen
)

// Reasons of a Deployment's condition Progressing, as its controller sets them.
const (
	reasonRolledOut = "NewReplicaSetAvailable"
	reasonStuck     = "ProgressDeadlineExceeded"
)

// rolloutOf reads the state of a rollout from the status that the cluster gives to the Deployment. It is the condition
// that tells a rollout from pods that come and go for other reasons, such as an autoscaler.
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
		return rolledOut // there is nothing to hold up, whatever the condition says of the pause
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

// available tells whether a pod answers.
func available(deployment *appsv1.Deployment) bool {
	return deployment != nil && deployment.Status.AvailableReplicas > 0
}

// isUnderway reports whether a Deployment has a turn.
func isUnderway(deployment *appsv1.Deployment) bool {
	state := rolloutOf(deployment)
	return state == rolling || state == unseen
}
