package render

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
)

// renderNetworkPolicy returns what lets only the named peers reach the pods; nil if none is wanted. The kubelet's probes come from the
// pod's own node, which no policy blocks.
func (w *workload) renderNetworkPolicy() *networkingv1ac.NetworkPolicyApplyConfiguration {
	settings := w.networkPolicy
	if settings == nil {
		return nil
	}
	spec := networkingv1ac.NetworkPolicySpec().
		WithPodSelector(w.podSelector()).
		WithPolicyTypes(networkingv1.PolicyTypeIngress).
		WithIngress(ingressRule(w.ports, settings.IngressFrom)) // no peers means all peers
	if len(settings.MetricsFrom) > 0 {
		spec.WithIngress(ingressRule([]port{{healthPort, healthPortNumber}}, settings.MetricsFrom))
	}
	return networkingv1ac.NetworkPolicy(w.name, w.namespace).
		WithLabels(w.labels).WithOwnerReferences(w.owners...).
		WithSpec(spec)
}

func ingressRule(ports []port, from []networkingv1.NetworkPolicyPeer) *networkingv1ac.NetworkPolicyIngressRuleApplyConfiguration {
	rule := networkingv1ac.NetworkPolicyIngressRule()
	for _, p := range ports {
		rule.WithPorts(networkingv1ac.NetworkPolicyPort().WithProtocol(corev1.ProtocolTCP).WithPort(intstr.FromInt32(p.number)))
	}
	rule.From = toConfiguration[[]networkingv1ac.NetworkPolicyPeerApplyConfiguration](from)
	return rule
}
