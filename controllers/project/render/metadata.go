package render

import (
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// Labels returns the labels of every child.
func Labels(p *verifyv1.VerificationProject) map[string]string {
	labels := Selector(p)
	labels["app.kubernetes.io/instance"] = labels[verifyv1.ProjectLabel]
	labels["app.kubernetes.io/managed-by"] = "phoneproof-operator"
	return labels
}

// Selector returns the labels that select a project's pods and no others. A Deployment's selector is immutable, so these never
// change.
func Selector(p *verifyv1.VerificationProject) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":      "phoneproof",
		"app.kubernetes.io/component": "server",
		verifyv1.ProjectLabel:         verifyv1.ProjectLabelValue(p.Name),
	}
}

// OwnerReference makes the project the controller of a child: the child is deleted with it, and the operator treats it as its
// own. It does not block the project's deletion, because that would need a right on the project's finalizers.
func OwnerReference(p *verifyv1.VerificationProject) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(verifyv1.GroupVersion.String()).WithKind("VerificationProject").
		WithName(p.Name).WithUID(p.UID).WithController(true)
}

func podSelector(p *verifyv1.VerificationProject) *metav1ac.LabelSelectorApplyConfiguration {
	return metav1ac.LabelSelector().WithMatchLabels(Selector(p))
}
