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

// renderServiceAccount returns the identity of the pods. It does not mount its token by default, because a foreign pod would get the token
// too.
func (w *workload) renderServiceAccount() *corev1ac.ServiceAccountApplyConfiguration {
	return corev1ac.ServiceAccount(w.name, w.namespace).
		WithLabels(w.labels).WithOwnerReferences(w.owners...).
		WithAutomountServiceAccountToken(false)
}

// renderRoleBindings returns what gives the pods the rights that their storages need. A binding's role is immutable, so each role has a
// binding with a name of its own.
func (w *workload) renderRoleBindings(o Options) []*rbacv1ac.RoleBindingApplyConfiguration {
	var bindings []*rbacv1ac.RoleBindingApplyConfiguration
	for _, storage := range w.sortedStorages() {
		name, kind := w.name+"-"+storage, "ClusterRole"
		if o.NamespacedRoles {
			name, kind = name+namespacedSuffix, "Role"
		}
		bindings = append(bindings, rbacv1ac.RoleBinding(name, w.namespace).
			WithLabels(w.labels).WithOwnerReferences(w.owners...).
			WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind(kind).WithName(rolePrefix+storage)).
			WithSubjects(rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithName(w.name).WithNamespace(w.namespace)))
	}
	return bindings
}

// storageName names the project's storage as in roles and in serve's --store.
func storageName(p *verifyv1.VerificationProject) string {
	if p.Spec.Storage.Type == verifyv1.StoragePostgreSQL {
		return postgresql
	}
	return kubernetes
}
