package render

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	autoscalingv2ac "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	"k8s.io/utils/ptr"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// HorizontalPodAutoscaler sets the number of pods; nil if the project wants none, or no pods.
func HorizontalPodAutoscaler(p *verifyv1.VerificationProject) *autoscalingv2ac.HorizontalPodAutoscalerApplyConfiguration {
	settings := p.Spec.Server.Autoscaling
	if settings == nil || p.Suspended() {
		return nil
	}
	target := ptr.Deref(settings.TargetCPUUtilization, verifyv1.DefaultTargetCPUUtilization)
	return autoscalingv2ac.HorizontalPodAutoscaler(Name(p.Name), p.Namespace).
		WithLabels(Labels(p)).WithOwnerReferences(OwnerReference(p)).
		WithSpec(autoscalingv2ac.HorizontalPodAutoscalerSpec().
			WithScaleTargetRef(autoscalingv2ac.CrossVersionObjectReference().
				WithAPIVersion("apps/v1").WithKind("Deployment").WithName(Name(p.Name))).
			WithMinReplicas(ptr.Deref(settings.MinReplicas, verifyv1.DefaultMinReplicas)).
			WithMaxReplicas(settings.MaxReplicas).
			WithMetrics(autoscalingv2ac.MetricSpec().
				WithType(autoscalingv2.ResourceMetricSourceType).
				WithResource(autoscalingv2ac.ResourceMetricSource().
					WithName(corev1.ResourceCPU).
					WithTarget(autoscalingv2ac.MetricTarget().
						WithType(autoscalingv2.UtilizationMetricType).WithAverageUtilization(target)))))
}
