package render

import (
	"cmp"
	"slices"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

const (
	secretsVolumeName = "secrets"
	secretsDir        = "/etc/phoneproof/secrets" //nolint:gosec // a path
	// secretsMode lets any user of the container read the files, because they belong to root. There is no other container in the
	// pod, and on the node the volume is below a folder that only root may enter.
	secretsMode = 0o444
)

// secretsVolume holds the file SECRET/KEY for every Secret key that the projects name. A missing one is left out, and appears
// when it is created: until then the pods run without it and report that.
func (w *workload) secretsVolume() *corev1ac.VolumeApplyConfiguration {
	projected := corev1ac.ProjectedVolumeSource().WithDefaultMode(secretsMode)
	for _, ref := range w.mountedRefs() {
		last := len(projected.Sources) - 1
		if last < 0 || *projected.Sources[last].Secret.Name != ref.Name {
			projected.WithSources(corev1ac.VolumeProjection().
				WithSecret(corev1ac.SecretProjection().WithName(ref.Name).WithOptional(true)))
			last++
		}
		projected.Sources[last].Secret.WithItems(corev1ac.KeyToPath().WithKey(ref.Key).WithPath(mountPath(ref)))
	}
	return corev1ac.Volume().WithName(secretsVolumeName).WithProjected(projected)
}

// The picture above the page is the file logoFile, in a volume of its own: a ConfigMap that is missing must not keep the pods of an
// API from starting.
const (
	logoVolumeName = "logo"
	logoDir        = "/etc/phoneproof/logo"
	logoFile       = "logo"
)

// logoRef returns the picture above the page; nil for none.
func logoRef(p *verifyv1.VerificationProject) *verifyv1.ConfigMapKeyRef {
	if p.Spec.Page == nil {
		return nil
	}
	return p.Spec.Page.LogoRef
}

// logo is a picture with its volume and the folder that it is mounted at.
type logo struct {
	volume, dir string
	ref         *verifyv1.ConfigMapKeyRef
}

func (l logo) newVolume() *corev1ac.VolumeApplyConfiguration {
	return corev1ac.Volume().WithName(l.volume).WithConfigMap(corev1ac.ConfigMapVolumeSource().
		WithName(l.ref.Name).WithOptional(true).WithDefaultMode(secretsMode).
		WithItems(corev1ac.KeyToPath().WithKey(l.ref.Key).WithPath(logoFile)))
}

// mountedRefs returns the Secret keys that the pods mount, sorted, so that the order in a spec makes no difference to the pods. Several
// projects of a pool may name the same key.
func (w *workload) mountedRefs() []verifyv1.SecretKeyRef {
	return slices.Compact(slices.SortedFunc(slices.Values(w.secrets), func(a, b verifyv1.SecretKeyRef) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key))
	}))
}

// mountedPaths returns the files of the mounted Secret keys, those of a Secret together: Linux bounds the length of an argument.
func (w *workload) mountedPaths() [][]string {
	var paths [][]string
	refs := w.mountedRefs()
	for i, ref := range refs {
		if i == 0 || ref.Name != refs[i-1].Name {
			paths = append(paths, nil)
		}
		paths[len(paths)-1] = append(paths[len(paths)-1], mountPath(ref))
	}
	return paths
}

func mountPath(ref verifyv1.SecretKeyRef) string { return ref.Name + "/" + ref.Key }
