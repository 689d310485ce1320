package render

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// NetworkPolicy lets only the named peers reach the pods; nil if the project wants none. The kubelet's probes come from the pod's
// own node, which no policy blocks.
func NetworkPolicy(p *verifyv1.VerificationProject) *networkingv1ac.NetworkPolicyApplyConfiguration {
	settings := p.Spec.NetworkPolicy
	if settings == nil {
		return nil
	}
	spec := networkingv1ac.NetworkPolicySpec().
		WithPodSelector(podSelector(p)).
		WithPolicyTypes(networkingv1.PolicyTypeIngress).
		WithIngress(ingressRule(apiPortNumber, settings.IngressFrom)) // no peers means all peers
	if len(settings.MetricsFrom) > 0 {
		spec.WithIngress(ingressRule(healthPortNumber, settings.MetricsFrom))
	}
	return networkingv1ac.NetworkPolicy(Name(p.Name), p.Namespace).
		WithLabels(Labels(p)).WithOwnerReferences(OwnerReference(p)).
		WithSpec(spec)
}

func ingressRule(port int32, from []networkingv1.NetworkPolicyPeer) *networkingv1ac.NetworkPolicyIngressRuleApplyConfiguration {
	rule := networkingv1ac.NetworkPolicyIngressRule().
		WithPorts(networkingv1ac.NetworkPolicyPort().WithProtocol(corev1.ProtocolTCP).WithPort(intstr.FromInt32(port)))
	rule.From = toConfiguration[[]networkingv1ac.NetworkPolicyPeerApplyConfiguration](from)
	return rule
}
