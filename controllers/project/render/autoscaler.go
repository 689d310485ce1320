package render

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	autoscalingv2ac "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	"k8s.io/utils/ptr"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// renderAutoscaler returns what sets the number of pods; nil if none is wanted, or no pods.
func (w *workload) renderAutoscaler() *autoscalingv2ac.HorizontalPodAutoscalerApplyConfiguration {
	settings := w.server.Autoscaling
	if settings == nil || w.suspended {
		return nil
	}
	target := ptr.Deref(settings.TargetCPUUtilization, verifyv1.DefaultTargetCPUUtilization)
	return autoscalingv2ac.HorizontalPodAutoscaler(w.name, w.namespace).
		WithLabels(w.labels).WithOwnerReferences(w.owners...).
		WithSpec(autoscalingv2ac.HorizontalPodAutoscalerSpec().
			WithScaleTargetRef(autoscalingv2ac.CrossVersionObjectReference().
				WithAPIVersion("apps/v1").WithKind("Deployment").WithName(w.name)).
			WithMinReplicas(ptr.Deref(settings.MinReplicas, verifyv1.DefaultMinReplicas)).
			WithMaxReplicas(settings.MaxReplicas).
			WithMetrics(autoscalingv2ac.MetricSpec().
				WithType(autoscalingv2.ResourceMetricSourceType).
				WithResource(autoscalingv2ac.ResourceMetricSource().
					WithName(corev1.ResourceCPU).
					WithTarget(autoscalingv2ac.MetricTarget().
						WithType(autoscalingv2.UtilizationMetricType).WithAverageUtilization(target)))))
}
