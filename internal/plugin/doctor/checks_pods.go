package doctor

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// podChecks are about why pods are not there or not ready.
func podChecks() []check {
	return []check{
		{
			name: "QuotaExceeded", problem: "a ResourceQuota of the namespace keeps pods from being created",
			remedy: "ask for a larger quota, lower `spec.server.replicas` or `spec.server.resources`, or set what the quota wants set: " +
				"`kubectl -n NAMESPACE describe resourcequota`",
			find: func(f *Facts) []evidence {
				return slices.Concat(findRefusal(f, isQuota), findFullQuotas(f))
			},
		},
		{
			name: "LimitRangeRefuses", problem: "a LimitRange of the namespace keeps pods from being created",
			remedy: "set `spec.server.resources` to what it allows: `kubectl -n NAMESPACE describe limitrange`",
			find:   func(f *Facts) []evidence { return findRefusal(f, isLimitRange) },
		},
		{
			name: "PodsRefused", problem: "the API server refuses to create pods",
			remedy: "look at the message and at `kubectl -n NAMESPACE describe replicaset -l phoneproof.dev/project`: Pod Security, a webhook, a " +
				"missing ServiceAccount",
			find: func(f *Facts) []evidence {
				return findRefusal(f, func(message string) bool { return !isQuota(message) && !isLimitRange(message) })
			},
		},
		{
			name: "ImageNotPulled", problem: "the image of the pods cannot be pulled",
			remedy: "correct `--server-image` of the operator (chart value `image.*`), or the registry's Secret of `--server-image-pull-secret`, which " +
				"must be in NAMESPACE: `kubectl -n NAMESPACE describe pods -l phoneproof.dev/project`",
			find: onPods(isImageMissing),
		},
		{
			name: "PodsUnschedulable", problem: "no node takes the pods",
			remedy: "lower `spec.server.resources`, correct `spec.server.nodeSelector`, `tolerations` or `affinity`, or add nodes: " +
				"`kubectl -n NAMESPACE describe pods -l phoneproof.dev/project`",
			find: onPods(isUnschedulable),
		},
		{
			name: "PodsCrash", problem: "the pods end again and again",
			remedy: "read why: `kubectl -n NAMESPACE logs deploy/phoneproof-PROJECT --previous`; raise `spec.server.resources.limits.memory` if it is OOMKilled",
			find:   onPods(isCrashing),
		},
		{
			name: "PodsNotStarted", problem: "a container of the pods cannot be created",
			remedy: "look at the events: `kubectl -n NAMESPACE describe pods -l phoneproof.dev/project`",
			find:   onPods(isNotStarted),
		},
		{
			name: "PodsNotReady", problem: "pods run and have not been ready for two minutes or longer",
			remedy: "look at what they cannot reach: `kubectl -n NAMESPACE logs -l phoneproof.dev/project --tail=50`",
			find: func(f *Facts) []evidence {
				return onPods(func(p *corev1.Pod) string { return isNotReady(f, p) })(f)
			},
		},
	}
}

// findRefusal returns the message by which the creation of pods is refused, if it matches.
func findRefusal(f *Facts, matches func(string) bool) []evidence {
	if f.Deployment.Value == nil {
		return nil
	}
	for _, c := range f.Deployment.Value.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue && matches(c.Message) {
			return see("Deployment " + f.Deployment.Value.Name + ": " + c.Message)
		}
	}
	return nil
}

func isQuota(message string) bool {
	return strings.Contains(message, "exceeded quota") || strings.Contains(message, "failed quota")
}

// isLimitRange recognizes the messages of the admission plugin LimitRanger.
func isLimitRange(message string) bool {
	return strings.Contains(message, "usage per Container") || strings.Contains(message, "usage per Pod") ||
		strings.Contains(message, "ratio per Container") || strings.Contains(message, "ratio per Pod")
}

// findFullQuotas returns the quotas that have no room for the pods that are missing. The message of the Deployment says the same, and
// later; it is not repeated.
func findFullQuotas(f *Facts) []evidence {
	d := f.Deployment.Value
	if d == nil || d.Spec.Replicas == nil || d.Status.Replicas >= *d.Spec.Replicas || len(findRefusal(f, isQuota)) > 0 {
		return nil
	}
	var found []evidence
	for i := range f.Quotas.Value {
		q := &f.Quotas.Value[i]
		for name, need := range needsOfPod(d) {
			hard, limited := q.Status.Hard[name]
			left := hard.DeepCopy()
			left.Sub(q.Status.Used[name])
			if limited && left.Cmp(need) < 0 {
				found = append(found, evidence{text: fmt.Sprintf("ResourceQuota %s: %s of %s are used, and a pod needs %s",
					q.Name, name, hard.String(), need.String())})
			}
		}
	}
	slices.SortFunc(found, func(a, b evidence) int { return strings.Compare(a.text, b.text) })
	return found
}
