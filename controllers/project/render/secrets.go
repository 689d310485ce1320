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

// secretsVolume holds the file SECRET/KEY for every Secret key that the project names. A missing one is left out, and appears
// when it is created: until then the pods run without it and report that.
func secretsVolume(p *verifyv1.VerificationProject) *corev1ac.VolumeApplyConfiguration {
	projected := corev1ac.ProjectedVolumeSource().WithDefaultMode(secretsMode)
	for _, ref := range mountedRefs(p) {
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

func logoVolume(ref *verifyv1.ConfigMapKeyRef) *corev1ac.VolumeApplyConfiguration {
	return corev1ac.Volume().WithName(logoVolumeName).WithConfigMap(corev1ac.ConfigMapVolumeSource().
		WithName(ref.Name).WithOptional(true).WithDefaultMode(secretsMode).
		WithItems(corev1ac.KeyToPath().WithKey(ref.Key).WithPath(logoFile)))
}

// mountedRefs returns the Secret keys that the pods mount, sorted, so that the order in the spec makes no difference to the pods.
func mountedRefs(p *verifyv1.VerificationProject) []verifyv1.SecretKeyRef {
	return slices.SortedFunc(slices.Values(p.Spec.SecretRefs()), func(a, b verifyv1.SecretKeyRef) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key))
	})
}

// mountedPaths returns the files of the mounted Secret keys.
func mountedPaths(p *verifyv1.VerificationProject) []string {
	var paths []string
	for _, ref := range mountedRefs(p) {
		paths = append(paths, mountPath(ref))
	}
	return paths
}

func mountPath(ref verifyv1.SecretKeyRef) string { return ref.Name + "/" + ref.Key }
