package render

import (
	networkingv1 "k8s.io/api/networking/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// Ingress exposes the Service outside the cluster; nil if the project wants none.
func Ingress(p *verifyv1.VerificationProject) *networkingv1ac.IngressApplyConfiguration {
	settings := p.Spec.Expose.Ingress
	if settings == nil {
		return nil
	}
	paths := networkingv1ac.HTTPIngressRuleValue()
	for _, e := range exposedPaths(p) {
		paths.WithPaths(ingressPath(p, e))
	}
	rule := networkingv1ac.IngressRule().WithHTTP(paths)
	tls := networkingv1ac.IngressTLS()
	if host := dnsHost(p.Spec.EffectiveIngressHost()); host != "" {
		rule.WithHost(host)
		tls.WithHosts(host)
	}
	spec := networkingv1ac.IngressSpec().WithRules(rule)
	if settings.ClassName != "" {
		spec.WithIngressClassName(settings.ClassName)
	}
	if settings.TLSSecretName != "" {
		spec.WithTLS(tls.WithSecretName(settings.TLSSecretName))
	}
	return networkingv1ac.Ingress(Name(p.Name), p.Namespace).
		WithLabels(Labels(p)).WithOwnerReferences(OwnerReference(p)).
		WithAnnotations(verifyv1.Strings(settings.Annotations)).
		WithSpec(spec)
}

func ingressPath(p *verifyv1.VerificationProject, e exposedPath) *networkingv1ac.HTTPIngressPathApplyConfiguration {
	kind := networkingv1.PathTypeExact
	if e.prefix {
		kind = networkingv1.PathTypePrefix
	}
	return networkingv1ac.HTTPIngressPath().WithPath(e.path).WithPathType(kind).
		WithBackend(networkingv1ac.IngressBackend().WithService(networkingv1ac.IngressServiceBackend().
			WithName(Name(p.Name)).WithPort(networkingv1ac.ServiceBackendPort().WithName(apiPort))))
}
