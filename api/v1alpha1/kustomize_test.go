package v1alpha1_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/phoneproof/phoneproof/internal/health"
	"github.com/phoneproof/phoneproof/test/repository"
)

// Users who run kubectl -k apply the output of kustomize, not the files.
var _ = Describe("Kustomize", Ordered, ContinueOnFailure, func() {
	var operator, samples []*unstructured.Unstructured

	BeforeAll(func(ctx context.Context) {
		operator, samples = buildKustomization(ctx, "config/default"), buildKustomization(ctx, "config/samples")
	})

	apply := func(ctx context.Context, object *unstructured.Unstructured) *unstructured.Unstructured {
		GinkgoHelper()
		answer := object.DeepCopy()
		Expect(api.Apply(ctx, client.ApplyConfigurationFromUnstructured(answer), client.FieldOwner("kubectl"))).To(Succeed(), describeObject(object))
		return answer
	}

	It("builds an operator that applies cleanly, and a second time without a change", func(ctx context.Context) {
		versions := map[string]string{}
		for _, object := range operator {
			versions[describeObject(object)] = apply(ctx, object).GetResourceVersion()
		}
		for _, object := range operator {
			if object.GetKind() != "CustomResourceDefinition" { // the API server writes the status of those
				Expect(apply(ctx, object).GetResourceVersion()).To(Equal(versions[describeObject(object)]), describeObject(object))
			}
		}
	})

	It("builds samples that apply cleanly", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		for _, object := range samples {
			sent := object.DeepCopy()
			sent.SetNamespace(namespace)
			apply(ctx, sent)
		}
	})

	It("reaches every object of every file, once", func() {
		root, err := repository.Root()
		Expect(err).NotTo(HaveOccurred())
		var written, built []string
		for _, dir := range []string{"config", "charts/phoneproof/files/admission", "charts/phoneproof/files/crds", "charts/phoneproof/files/rbac"} {
			Expect(filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
				if err == nil && filepath.Ext(path) == ".yaml" && entry.Name() != "kustomization.yaml" {
					for _, object := range readObjects(path) {
						written = append(written, describeObject(&unstructured.Unstructured{Object: object}))
					}
				}
				return err
			})).To(Succeed(), dir)
		}
		for _, object := range slices.Concat(operator, samples) {
			built = append(built, describeObject(object))
		}
		Expect(len(written)).To(BeNumerically(">", 20))
		Expect(built).To(ConsistOf(written))
	})

	It("gives the operator and what projects run one image", func() {
		container := findDeployment(operator).Spec.Template.Spec.Containers[0]
		Expect(container.Image).To(HavePrefix("ghcr.io/phoneproof/phoneproof:"))
		Expect(container.Args).To(Equal([]string{"operator", "--server-image=$(SERVER_IMAGE)"}))
		Expect(container.Env).To(ContainElement(corev1.EnvVar{Name: "SERVER_IMAGE", Value: container.Image}))
	})

	It("builds the operator of make demo-cluster: the same with two flags more", func(ctx context.Context) {
		demo, want := buildKustomization(ctx, "hack/demo-cluster/operator"), findDeployment(operator)
		container := &want.Spec.Template.Spec.Containers[0]
		container.Args = append(container.Args, "--simulator-url=http://simulator.phoneproof-demo.svc:8090",
			"--webhook-allow=phoneproof-demo=10.96.0.0/16:8090")
		container.ReadinessProbe.PeriodSeconds = 1
		Expect(findDeployment(demo)).To(Equal(want))
		Expect(demo).To(HaveLen(len(operator)))
	})

	It("probes what the health server serves, on a port that the container has", func(ctx context.Context) {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		server := health.New(listener, health.Options{
			Check: func(context.Context) error { return nil }, Metrics: prometheus.NewRegistry(), Log: logr.Discard(),
		})
		serving, stop := context.WithCancel(ctx)
		ended := make(chan error)
		go func() { ended <- server.Start(serving) }()
		DeferCleanup(func() {
			stop()
			Expect(<-ended).To(Succeed())
		})

		container := findDeployment(operator).Spec.Template.Spec.Containers[0]
		Expect(container.Ports).To(Equal([]corev1.ContainerPort{{Name: "metrics", ContainerPort: 8443}, {Name: "health", ContainerPort: 8081}}))
		for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe} {
			Expect(probe.HTTPGet.Port.String()).To(Equal("health"))
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+listener.Addr().String()+probe.HTTPGet.Path, nil)
			Expect(err).NotTo(HaveOccurred())
			Eventually(func() (int, error) {
				response, err := http.DefaultClient.Do(request)
				if err != nil {
					return 0, err
				}
				return response.StatusCode, response.Body.Close()
			}).Should(Equal(http.StatusOK), probe.HTTPGet.Path)
		}
		Expect(container.LivenessProbe.HTTPGet.Path).NotTo(Equal(container.ReadinessProbe.HTTPGet.Path), "liveness must depend on nothing outside the process")
	})
})

// buildKustomization returns what kubectl's kustomize makes of a folder of the repository.
func buildKustomization(ctx context.Context, dir string) []*unstructured.Unstructured {
	GinkgoHelper()
	root, err := repository.Root()
	Expect(err).NotTo(HaveOccurred())
	build := exec.CommandContext(ctx, plane.Kubectl, "kustomize", dir)
	build.Dir = root
	var stderr strings.Builder
	build.Stderr = &stderr
	out, err := build.Output()
	Expect(err).NotTo(HaveOccurred(), stderr.String())
	var objects []*unstructured.Unstructured
	for text := range bytes.SplitSeq(out, []byte("\n---\n")) {
		content, err := yaml.YAMLToJSON(text)
		Expect(err).NotTo(HaveOccurred())
		var object unstructured.Unstructured
		Expect(object.UnmarshalJSON(content)).To(Succeed())
		objects = append(objects, &object)
	}
	return objects
}

func describeObject(object *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s", object.GetKind(), object.GetName())
}

func findDeployment(objects []*unstructured.Unstructured) appsv1.Deployment {
	GinkgoHelper()
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			return decodeAs[appsv1.Deployment](object.Object)
		}
	}
	Fail("no Deployment was built")
	return appsv1.Deployment{}
}
