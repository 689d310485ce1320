package render

import (
	rbacv1 "k8s.io/api/rbac/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// A server's role is named rolePrefix and the storage. The roles come with the installation; the operator may bind these two and
// no others.
const (
	rolePrefix = "phoneproof-server-"
	kubernetes = "kubernetes"
	postgresql = "postgresql"
	// namespacedSuffix ends the name of a binding to a Role.
	namespacedSuffix = "-ns"
)

// ServiceAccount is the identity of the project's pods. It does not mount its token by default, because a foreign pod would get
// the token too.
func ServiceAccount(p *verifyv1.VerificationProject) *corev1ac.ServiceAccountApplyConfiguration {
	return corev1ac.ServiceAccount(Name(p.Name), p.Namespace).
		WithLabels(Labels(p)).WithOwnerReferences(OwnerReference(p)).
		WithAutomountServiceAccountToken(false)
}

// RoleBinding gives the project's pods the rights that their storage needs. A binding's role is immutable, so each role has a
// binding with a name of its own.
func RoleBinding(p *verifyv1.VerificationProject, o Options) *rbacv1ac.RoleBindingApplyConfiguration {
	name, kind := Name(p.Name)+"-"+storageName(p), "ClusterRole"
	if o.NamespacedRoles {
		name, kind = name+namespacedSuffix, "Role"
	}
	return rbacv1ac.RoleBinding(name, p.Namespace).
		WithLabels(Labels(p)).WithOwnerReferences(OwnerReference(p)).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind(kind).WithName(rolePrefix + storageName(p))).
		WithSubjects(rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithName(Name(p.Name)).WithNamespace(p.Namespace))
}

// storageName names the project's storage as in roles and in serve's --store.
func storageName(p *verifyv1.VerificationProject) string {
	if p.Spec.Storage.Type == verifyv1.StoragePostgreSQL {
		return postgresql
	}
	return kubernetes
}
