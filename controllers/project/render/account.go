package render

import (
	rbacv1 "k8s.io/api/rbac/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// The servers' roles are rolePrefix and the storage. They come with the installation; the operator may bind these two and no
// others.
const (
	rolePrefix = "phoneproof-server-"
	kubernetes = "kubernetes"
	postgresql = "postgresql"
	// namespaced ends the name of a binding to a Role.
	namespaced = "-ns"
)

// ServiceAccount is who the project's pods are. It mounts no token by itself: somebody else's pod would get one too.
func ServiceAccount(p *verifyv1.VerificationProject) *corev1ac.ServiceAccountApplyConfiguration {
	return corev1ac.ServiceAccount(Name(p.Name), p.Namespace).
		WithLabels(Labels(p)).WithOwnerReferences(OwnerReference(p)).
		WithAutomountServiceAccountToken(false)
}

// RoleBinding gives the project's pods the rights that their storage needs. A binding's role is immutable, so each role has a
// binding of its own name.
func RoleBinding(p *verifyv1.VerificationProject, o Options) *rbacv1ac.RoleBindingApplyConfiguration {
	name, kind := Name(p.Name)+"-"+storage(p), "ClusterRole"
	if o.NamespacedRoles {
		name, kind = name+namespaced, "Role"
	}
	return rbacv1ac.RoleBinding(name, p.Namespace).
		WithLabels(Labels(p)).WithOwnerReferences(OwnerReference(p)).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind(kind).WithName(rolePrefix + storage(p))).
		WithSubjects(rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithName(Name(p.Name)).WithNamespace(p.Namespace))
}

// storage names the project's storage as roles and serve's --store do.
func storage(p *verifyv1.VerificationProject) string {
	if p.Spec.Storage.Type == verifyv1.StoragePostgreSQL {
		return postgresql
	}
	return kubernetes
}
