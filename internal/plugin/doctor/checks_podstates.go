package doctor

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// needsOfPod returns what a pod of the Deployment takes of a quota.
func needsOfPod(d *appsv1.Deployment) corev1.ResourceList {
	needs := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1"), "count/pods": resource.MustParse("1")}
	add := func(name corev1.ResourceName, amount resource.Quantity) {
		sum := needs[name]
		sum.Add(amount)
		needs[name] = sum
	}
	for i := range d.Spec.Template.Spec.Containers {
		resources := &d.Spec.Template.Spec.Containers[i].Resources
		for name, amount := range resources.Requests {
			add("requests."+name, amount)
			add(name, amount)
		}
		for name, amount := range resources.Limits {
			add("limits."+name, amount)
		}
	}
	return needs
}

// onPods makes a check of the state of pods. Its evidence is the first pod that has it, and how many have.
func onPods(state func(*corev1.Pod) string) func(*Facts) []evidence {
	return func(f *Facts) []evidence {
		first, count := "", 0
		for i := range f.Pods.Value {
			p := &f.Pods.Value[i]
			if text := state(p); text != "" && p.DeletionTimestamp == nil {
				count++
				if first == "" {
					first = "pod " + p.Name + ": " + text
				}
			}
		}
		if count == 0 {
			return nil
		}
		return see(fmt.Sprintf("%s (%d of %d pods)", first, count, len(f.Pods.Value)))
	}
}

// waitingFor returns why a container of the pod waits, if it is one of the reasons.
func waitingFor(p *corev1.Pod, reasons ...string) string {
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil && slices.Contains(reasons, w.Reason) {
			return w.Reason + " " + w.Message
		}
	}
	return ""
}

func isImageMissing(p *corev1.Pod) string {
	return waitingFor(p, "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable",
		"ImageInspectError")
}

func isNotStarted(p *corev1.Pod) string {
	return waitingFor(p, "CreateContainerConfigError", "CreateContainerError", "RunContainerError")
}

func isUnschedulable(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return c.Message
		}
	}
	return ""
}

func isCrashing(p *corev1.Pod) string {
	for _, c := range p.Status.ContainerStatuses {
		last := c.LastTerminationState.Terminated
		waits := c.State.Waiting != nil && c.State.Waiting.Reason == "CrashLoopBackOff"
		if waits && last != nil {
			return fmt.Sprintf("ended %d times, last with the code %d, %s", c.RestartCount, last.ExitCode, last.Reason)
		}
		if waits {
			return fmt.Sprintf("ended %d times", c.RestartCount)
		}
	}
	return ""
}

// isNotReady returns what is known of a pod that runs and has not been ready for longer than a start takes.
func isNotReady(f *Facts, p *corev1.Pod) string {
	if p.Status.Phase != corev1.PodRunning || isCrashing(p) != "" || isImageMissing(p) != "" || isNotStarted(p) != "" {
		return ""
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse && !isRecent(f, c.LastTransitionTime.Time) {
			return c.Reason + " " + c.Message
		}
	}
	return ""
}
