package apply

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/render"
)

// Owner is a project, or a pool of projects: what children belong to.
type Owner struct {
	namespace string
	// labels are those by which the children are found.
	labels client.MatchingLabels
	// owns reports whether an object is a child, by more than its name and its labels.
	owns func(metav1.Object) bool
	// shared is set if what a Deployment is to be depends on what it is: then one that was changed meanwhile is not written.
	shared bool
}

// OwnerProject returns the project as an owner: it is the controller of its children. A former project of the same name is not.
func OwnerProject(p *verifyv1.VerificationProject) Owner {
	return Owner{
		namespace: p.Namespace, labels: client.MatchingLabels{verifyv1.ProjectLabel: verifyv1.ProjectLabelValue(p.Name)},
		owns: func(object metav1.Object) bool { return metav1.IsControlledBy(object, p) },
	}
}

// OwnerPool returns a pool as an owner. One of the projects of the namespace, which are given by their UIDs, owns each of its children
// with the pool's label or, if that was removed, its name, and none is their controller. The project need not be in the pool any more: the
// last one may have left.
func OwnerPool(namespace, pool string, projects map[types.UID]bool) Owner {
	return Owner{
		namespace: namespace, labels: client.MatchingLabels{verifyv1.PoolLabel: pool}, shared: true,
		owns: func(object metav1.Object) bool {
			label := object.GetLabels()[verifyv1.PoolLabel]
			return (label == pool || label == "" && object.GetName() == render.PoolName(pool)) && metav1.GetControllerOf(object) == nil &&
				slices.ContainsFunc(projectOwners(object), func(owner metav1.OwnerReference) bool { return projects[owner.UID] })
		},
	}
}

// PoolOwners returns the projects that own an object of a pool; none for any other object.
func PoolOwners(object metav1.Object) []metav1.OwnerReference {
	if object.GetLabels()[verifyv1.PoolLabel] == "" {
		return nil
	}
	return projectOwners(object)
}

func projectOwners(object metav1.Object) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(object.GetOwnerReferences()), func(owner metav1.OwnerReference) bool {
		return owner.Kind != verifyv1.VerificationProjectKind || !strings.HasPrefix(owner.APIVersion, verifyv1.GroupVersion.Group+"/")
	})
}
