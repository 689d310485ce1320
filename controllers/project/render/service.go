package render

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// servicePort is the Service's port of the API.
const servicePort = 80

// Service is the Service of the pods. It exposes the API only: health and metrics are read from each pod.
func Service(p *verifyv1.VerificationProject) *corev1ac.ServiceApplyConfiguration {
	settings := &p.Spec.Expose.Service
	return corev1ac.Service(Name(p.Name), p.Namespace).
		WithLabels(Labels(p)).WithOwnerReferences(OwnerReference(p)).
		WithAnnotations(verifyv1.Strings(settings.Annotations)).
		WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceType(settings.Type)).
			WithSelector(Selector(p)).
			WithPorts(corev1ac.ServicePort().
				WithName(apiPort).WithProtocol(corev1.ProtocolTCP).WithAppProtocol("http").
				WithPort(servicePort).WithTargetPort(intstr.FromString(apiPort))))
}
