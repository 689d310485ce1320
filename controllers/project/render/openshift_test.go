package render_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/phoneproof/phoneproof/controllers/project/render"
	"github.com/phoneproof/phoneproof/controllers/project/render/rendertest"
)

// OpenShift's restricted-v2 gives pods a user and an fsGroup of the namespace's own range, and refuses any other.
func TestDeployment_leavesUserAndGroupToTheCluster(t *testing.T) {
	for _, c := range rendertest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			g := NewWithT(t)
			content, err := yaml.Marshal(render.Deployment(c.Project, c.Options).Spec.Template.Spec)
			g.Expect(err).NotTo(HaveOccurred())
			var pod corev1.PodSpec
			g.Expect(yaml.UnmarshalStrict(content, &pod)).To(Succeed())
			g.Expect(*pod.SecurityContext).To(Equal(corev1.PodSecurityContext{
				RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			}))
			g.Expect(pod.Containers).To(HaveLen(1), "another container in the pod could read the Secrets")
			g.Expect(*pod.Containers[0].SecurityContext).To(Equal(corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			}))
			for _, volume := range pod.Volumes {
				var mode *int32
				if volume.Projected != nil {
					mode = volume.Projected.DefaultMode
				} else {
					mode = volume.ConfigMap.DefaultMode
				}
				g.Expect(*mode).To(Equal(int32(0o444)), "root's files, which any user of the container must read")
			}
		})
	}
}
