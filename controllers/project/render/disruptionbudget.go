package render

import (
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"k8s.io/utils/ptr"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// PodDisruptionBudget bounds how many pods a node's drain may stop at once; nil if the project wants none. Pods that are not
// ready never block a drain: a move may help them.
func PodDisruptionBudget(p *verifyv1.VerificationProject) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	settings := p.Spec.Server.PodDisruptionBudget
	if settings == nil {
		return nil
	}
	return policyv1ac.PodDisruptionBudget(Name(p.Name), p.Namespace).
		WithLabels(Labels(p)).WithOwnerReferences(OwnerReference(p)).
		WithSpec(policyv1ac.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(ptr.Deref(settings.MaxUnavailable, verifyv1.DefaultMaxUnavailable))).
			WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow).
			WithSelector(podSelector(p)))
}
