package render

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/utils/ptr"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// progressDeadline is how long new pods may take to become ready until the rollout fails, in seconds.
const progressDeadline = 600

// Deployment runs the project's pods. A rollout starts new pods before it stops old ones, so their number never falls.
func Deployment(p *verifyv1.VerificationProject, o Options) *appsv1ac.DeploymentApplyConfiguration {
	return appsv1ac.Deployment(Name(p.Name), p.Namespace).
		WithLabels(Labels(p)).WithOwnerReferences(OwnerReference(p)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(Replicas(p)).
			WithRevisionHistoryLimit(2).
			WithProgressDeadlineSeconds(progressDeadline). // the default, but explicit, because it ends a turn to roll
			WithSelector(podSelector(p)).
			WithStrategy(appsv1ac.DeploymentStrategy().
				WithType(appsv1.RollingUpdateDeploymentStrategyType).
				WithRollingUpdate(appsv1ac.RollingUpdateDeployment().
					WithMaxUnavailable(intstr.FromInt32(0)).WithMaxSurge(intstr.FromString("25%")))).
			WithTemplate(podTemplate(p, o)))
}

// Replicas returns the number of pods that the project declares. With an autoscaler it is the initial number.
func Replicas(p *verifyv1.VerificationProject) int32 {
	server := &p.Spec.Server
	switch {
	case p.Suspended():
		return 0
	case server.Autoscaling != nil:
		return ptr.Deref(server.Autoscaling.MinReplicas, verifyv1.DefaultMinReplicas)
	default:
		return ptr.Deref(server.Replicas, verifyv1.DefaultReplicas)
	}
}
