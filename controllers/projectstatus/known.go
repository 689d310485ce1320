package projectstatus

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// known is the newest state of the object: as it was read or written last, or as the watch brought it.
type known struct {
	uid     types.UID
	version string
	// conditions are those of our types, or those that were written. If the object has others after a write, somebody else
	// holds on to one of them, and to write again would change nothing.
	conditions []metav1.Condition
}

func knownOf(project *verifyv1.VerificationProject) known {
	return known{uid: project.UID, version: project.ResourceVersion, conditions: ours(project.Status.Conditions)}
}

// latest returns what is known when the watch has brought the object: it may be behind our own writes. Versions that
// cannot be compared are taken as they come.
func (k known) latest(project *verifyv1.VerificationProject) known {
	order, err := resourceversion.CompareResourceVersion(k.version, project.ResourceVersion)
	if err == nil && order >= 0 {
		return k
	}
	return knownOf(project)
}
