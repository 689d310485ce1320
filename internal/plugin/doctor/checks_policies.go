package doctor

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/phoneproof/phoneproof/controllers/project/render"
)

// policyChecks read NetworkPolicies alone. What they do depends on the network of the cluster, so they find what may be closed.
func policyChecks() []check {
	return []check{
		{
			name: "PolicyClosesAPI", problem: "NetworkPolicies may let no one in to the API of the pods",
			remedy: "name the ingress controller in `spec.networkPolicy.ingressFrom`, or allow TCP 8080 in the policy: `kubectl -n NAMESPACE get networkpolicy -o yaml`",
			find: func(f *Facts) []evidence {
				return findClosed(f, networkingv1.PolicyTypeIngress, "in", []target{apiTarget})
			},
		},
		{
			name: "PolicyClosesEgress", problem: "NetworkPolicies may keep the pods from DNS, or from the API server and the messengers",
			remedy: "allow egress to UDP 53 and TCP 443 in the policy: `kubectl -n NAMESPACE get networkpolicy -o yaml`",
			find: func(f *Facts) []evidence {
				return findClosed(f, networkingv1.PolicyTypeEgress, "out", []target{dnsTarget, httpsTarget})
			},
		},
	}
}

// target is a port that must be open.
type target struct {
	text     string
	protocol corev1.Protocol
	port     int32
	name     string
}

// The port of the API is that of package render, which has a test of its own.
var (
	apiTarget   = target{"TCP 8080", corev1.ProtocolTCP, 8080, "http"}
	dnsTarget   = target{"UDP 53", corev1.ProtocolUDP, 53, ""}
	httpsTarget = target{"TCP 443", corev1.ProtocolTCP, 443, ""}
)

// findClosed returns the targets that no rule of the policies for the project's pods allows.
func findClosed(f *Facts, direction networkingv1.PolicyType, way string, targets []target) []evidence {
	var names []string
	open := map[target]bool{}
	for i := range f.Policies.Value {
		policy := &f.Policies.Value[i]
		if !restricts(policy, direction) || !selectsPods(f, &policy.Spec.PodSelector) {
			continue
		}
		names = append(names, policy.Name)
		for _, t := range targets {
			open[t] = open[t] || slices.ContainsFunc(rulePorts(policy, direction), t.isAllowedBy)
		}
	}
	if len(names) == 0 { // no policy, no restriction
		return nil
	}
	slices.Sort(names)
	var found []evidence
	for _, t := range targets {
		if !open[t] {
			found = append(found, evidence{text: "no rule of " + strings.Join(names, ", ") + " lets " + t.text + " " + way})
		}
	}
	return found
}

// restricts reports whether a policy is about that direction. Without types it is about ingress, and about egress if it has rules.
func restricts(policy *networkingv1.NetworkPolicy, direction networkingv1.PolicyType) bool {
	if len(policy.Spec.PolicyTypes) > 0 {
		return slices.Contains(policy.Spec.PolicyTypes, direction)
	}
	return direction == networkingv1.PolicyTypeIngress || len(policy.Spec.Egress) > 0
}

func selectsPods(f *Facts, selector *metav1.LabelSelector) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(render.Labels(f.Project)))
}

// rulePorts returns the ports of each rule; a nil element is a rule for all ports.
func rulePorts(policy *networkingv1.NetworkPolicy, direction networkingv1.PolicyType) [][]networkingv1.NetworkPolicyPort {
	var all [][]networkingv1.NetworkPolicyPort
	if direction == networkingv1.PolicyTypeIngress {
		for _, rule := range policy.Spec.Ingress {
			all = append(all, rule.Ports)
		}
		return all
	}
	for _, rule := range policy.Spec.Egress {
		all = append(all, rule.Ports)
	}
	return all
}

// isAllowedBy reports whether the ports of a rule include the target.
func (t target) isAllowedBy(ports []networkingv1.NetworkPolicyPort) bool {
	return len(ports) == 0 || slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool {
		protocol := corev1.ProtocolTCP
		if p.Protocol != nil {
			protocol = *p.Protocol
		}
		switch {
		case protocol != t.protocol:
			return false
		case p.Port == nil:
			return true
		case p.Port.Type == intstr.String:
			return t.name != "" && p.Port.StrVal == t.name
		case p.EndPort != nil:
			return p.Port.IntVal <= t.port && t.port <= *p.EndPort
		default:
			return p.Port.IntVal == t.port
		}
	})
}
