package render_test

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/phoneproof/phoneproof/controllers/project/render/rendertest"
	"github.com/phoneproof/phoneproof/test/controlplane"
)

// TestGoldens applies every golden file to a real API server.
func TestGoldens(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Goldens")
}

var admin client.Client

var _ = BeforeSuite(func(ctx SpecContext) {
	log.SetLogger(GinkgoLogr)
	plane, err := controlplane.Start(controlplane.Options{
		WithoutCRDs: true,
		CRDPaths:    []string{"../../../test/controlplane/testdata/httproute.yaml"},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(plane.Stop)
	admin, err = client.New(plane.Config, client.Options{})
	Expect(err).NotTo(HaveOccurred())
	// Pods that are not restricted, by the latest version of the standard, are refused here.
	Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: rendertest.Project().Namespace,
		Labels: map[string]string{
			"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/enforce-version": "latest",
		},
	}})).To(Succeed())
})

var _ = Describe("An API server", func() {
	for _, c := range rendertest.Cases() {
		It("accepts the golden file of "+c.Name, func(ctx SpecContext) {
			golden, err := os.ReadFile(goldenFile(c.Name))
			Expect(err).NotTo(HaveOccurred())
			for document := range strings.SplitSeq(string(golden), "---\n") {
				var object unstructured.Unstructured
				Expect(yaml.UnmarshalStrict([]byte(document), &object.Object)).To(Succeed())
				deployment := object.DeepCopy()
				Expect(dryRun(ctx, &object)).To(Succeed(), object.GetKind())
				if object.GetKind() == "Deployment" {
					Expect(admin.Create(ctx, podOf(deployment), client.DryRunAll)).To(Succeed(), "a pod of it")
				}
			}
		})
	}

	It("would refuse a field that it does not know", func(ctx SpecContext) {
		object := unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ServiceAccount", "unknown": true,
			"metadata": map[string]any{"name": "shop", "namespace": rendertest.Project().Namespace},
		}}
		Expect(dryRun(ctx, &object)).To(MatchError(ContainSubstring("unknown")))
	})

	It("would refuse a pod that is not restricted", func(ctx SpecContext) {
		golden, err := os.ReadFile(goldenFile("replicas"))
		Expect(err).NotTo(HaveOccurred())
		var deployment unstructured.Unstructured
		Expect(yaml.Unmarshal(golden, &deployment.Object)).To(Succeed())
		pod := podOf(&deployment)
		pod.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil
		Expect(admin.Create(ctx, pod, client.DryRunAll)).To(MatchError(ContainSubstring("allowPrivilegeEscalation")))
	})
})

func dryRun(ctx SpecContext, object *unstructured.Unstructured) error {
	return admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.DryRunAll, client.FieldOwner("test"))
}

// podOf returns the pod that a ReplicaSet of a Deployment would create.
func podOf(object *unstructured.Unstructured) *corev1.Pod {
	GinkgoHelper()
	var deployment appsv1.Deployment
	data, err := object.MarshalJSON()
	Expect(err).NotTo(HaveOccurred())
	Expect(yaml.Unmarshal(data, &deployment)).To(Succeed())
	template := deployment.Spec.Template
	template.Namespace, template.GenerateName = deployment.Namespace, deployment.Name+"-"
	return &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
}
