package render

import (
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"k8s.io/utils/ptr"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// renderDisruptionBudget returns what bounds how many pods a node's drain may stop at once; nil if none is wanted. Pods that are not ready
// never block a drain: a move may help them.
func (w *workload) renderDisruptionBudget() *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	settings := w.server.PodDisruptionBudget
	if settings == nil {
		return nil
	}
	return policyv1ac.PodDisruptionBudget(w.name, w.namespace).
		WithLabels(w.labels).WithOwnerReferences(w.owners...).
		WithSpec(policyv1ac.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(ptr.Deref(settings.MaxUnavailable, verifyv1.DefaultMaxUnavailable))).
			WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow).
			WithSelector(w.podSelector()))
}
