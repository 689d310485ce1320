package projectstatus

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// known is the newest known state of the object: from the last read or write, or from the watch.
type known struct {
	uid     types.UID
	version string
	// conditions are those of our types, or those that were written last. If the object's differ right after a write, another
	// field owner holds one of them, and another write would change nothing.
	conditions []metav1.Condition
}

func knownOf(project *verifyv1.VerificationProject) known {
	return known{uid: project.UID, version: project.ResourceVersion, conditions: servedConditions(project.Status.Conditions)}
}

// latest returns the newer state of k and the object that the watch brought, which may be behind our own writes. If the versions
// cannot be compared, the watch counts.
func (k known) latest(project *verifyv1.VerificationProject) known {
	order, err := resourceversion.CompareResourceVersion(k.version, project.ResourceVersion)
	if err == nil && order >= 0 {
		return k
	}
	return knownOf(project)
}
