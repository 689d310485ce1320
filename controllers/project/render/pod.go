package render

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

const (
	// gracePeriod is the time from the request to stop a pod to its end, in seconds: stopDelay, drainDelay, 15 for requests in
	// flight, 10 for the codes that are being sent, and 10 for the work behind them.
	gracePeriod = 50
	// stopDelay is how long a stopping pod still works as usual, in seconds, until all senders of requests have noticed.
	stopDelay = 5
)

func podTemplate(p *verifyv1.VerificationProject, o Options) *corev1ac.PodTemplateSpecApplyConfiguration {
	return corev1ac.PodTemplateSpec().WithLabels(Labels(p)).WithSpec(podSpec(p, o))
}

// podSpec conforms to the Pod Security Standard "restricted". It sets no user and no group: the image has them, and OpenShift's
// restricted-v2, which gives each namespace its own, refuses any other.
func podSpec(p *verifyv1.VerificationProject, o Options) *corev1ac.PodSpecApplyConfiguration {
	spec := corev1ac.PodSpec().
		WithServiceAccountName(Name(p.Name)).
		WithAutomountServiceAccountToken(true). // serve watches its project, with either storage
		WithEnableServiceLinks(false).
		WithTerminationGracePeriodSeconds(gracePeriod).
		WithSecurityContext(corev1ac.PodSecurityContext().
			WithRunAsNonRoot(true).
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		WithContainers(newContainer(p, o)).
		WithVolumes(secretsVolume(p))
	if logo := logoRef(p); logo != nil {
		spec.WithVolumes(logoVolume(logo))
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(o.PullSecrets))) { // apply refuses a repeated name
		spec.WithImagePullSecrets(corev1ac.LocalObjectReference().WithName(name))
	}
	return placePods(spec, p)
}
