package render

import (
	"slices"

	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// workload is what the pods of a project, or of a pool, are made from, and what stands beside them.
type workload struct {
	namespace, name  string
	labels, selector map[string]string
	annotations      map[string]string // of the Deployment
	owners           []*metav1ac.OwnerReferenceApplyConfiguration
	server           *verifyv1.Server
	networkPolicy    *verifyv1.NetworkPolicy
	suspended        bool
	// storages are those of its projects, as in roles and in serve's --store.
	storages []string
	// served are the arguments of serve that name the projects.
	served []string
	// secrets are the Secret keys that the pods mount.
	secrets []verifyv1.SecretKeyRef
	logos   []logo
	// ports are those of the APIs.
	ports []port
}

// port is a port of the pods.
type port struct {
	name   string
	number int32
}

// newProjectWorkload returns the workload of a project with pods of its own.
func newProjectWorkload(p *verifyv1.VerificationProject) *workload {
	w := &workload{
		namespace: p.Namespace, name: Name(p.Name), labels: Labels(p), selector: Selector(p),
		owners: []*metav1ac.OwnerReferenceApplyConfiguration{OwnerReference(p)},
		server: &p.Spec.Server, networkPolicy: p.Spec.NetworkPolicy, suspended: p.Suspended(),
		storages: []string{storageName(p)}, secrets: p.Spec.SecretRefs(), ports: []port{{apiPort, apiPortNumber}},
		served: []string{"--project=" + p.Namespace + "/" + p.Name, "--store=" + storageName(p)},
	}
	if ref := logoRef(p); ref != nil {
		w.logos = []logo{{logoVolumeName, logoDir, ref}}
	}
	return w
}

func (w *workload) podSelector() *metav1ac.LabelSelectorApplyConfiguration {
	return metav1ac.LabelSelector().WithMatchLabels(w.selector)
}

// sortedStorages returns the storages, each once.
func (w *workload) sortedStorages() []string {
	return slices.Compact(slices.Sorted(slices.Values(w.storages)))
}
