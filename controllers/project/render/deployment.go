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

// Deployment runs the pods of a project that is in no pool.
func Deployment(p *verifyv1.VerificationProject, o Options) *appsv1ac.DeploymentApplyConfiguration {
	return newProjectWorkload(p).renderDeployment(o)
}

// renderDeployment returns what runs the pods. A rollout starts new pods before it stops old ones, so their number never falls.
func (w *workload) renderDeployment(o Options) *appsv1ac.DeploymentApplyConfiguration {
	return appsv1ac.Deployment(w.name, w.namespace).
		WithLabels(w.labels).WithOwnerReferences(w.owners...).WithAnnotations(w.annotations).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(w.countReplicas()).
			WithRevisionHistoryLimit(2).
			WithProgressDeadlineSeconds(progressDeadline). // the default, but explicit, because it ends a turn to roll
			WithSelector(w.podSelector()).
			WithStrategy(appsv1ac.DeploymentStrategy().
				WithType(appsv1.RollingUpdateDeploymentStrategyType).
				WithRollingUpdate(appsv1ac.RollingUpdateDeployment().
					WithMaxUnavailable(intstr.FromInt32(0)).WithMaxSurge(intstr.FromString("25%")))).
			WithTemplate(w.podTemplate(o)))
}

// Replicas returns the number of pods that a project declares that is in no pool. With an autoscaler it is the initial number.
func Replicas(p *verifyv1.VerificationProject) int32 { return newProjectWorkload(p).countReplicas() }

func (w *workload) countReplicas() int32 {
	switch {
	case w.suspended:
		return 0
	case w.server.Autoscaling != nil:
		return ptr.Deref(w.server.Autoscaling.MinReplicas, verifyv1.DefaultMinReplicas)
	default:
		return ptr.Deref(w.server.Replicas, verifyv1.DefaultReplicas)
	}
}
