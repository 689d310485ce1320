// Package chart_test applies what the chart renders to a real API server: what unit tests of templates cannot see is
// whether Kubernetes takes it, and whether the operator knows the flags it is given.
package chart_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/phoneproof/phoneproof/test/controlplane"
	"github.com/phoneproof/phoneproof/test/repository"
)

const namespace = "phoneproof-system"

var (
	root     string
	api      client.Client
	warnings = &collected{}
)

func TestChart(t *testing.T) {
	if os.Getenv("PHONEPROOF_TEST_HELM") == "" {
		t.Skip("it needs Helm, which takes minutes to compile: make test PHONEPROOF_TEST_HELM=1 runs it")
	}
	RegisterFailHandler(Fail)
	RunSpecs(t, "Chart")
}

var _ = BeforeSuite(func(ctx context.Context) {
	var err error
	root, err = repository.Root()
	Expect(err).NotTo(HaveOccurred())
	plane, err := controlplane.Start(controlplane.Options{WithoutCRDs: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(plane.Stop)
	config := rest.CopyConfig(plane.Config)
	config.WarningHandler = warnings
	api, err = client.New(config, client.Options{FieldOwner: "helm", FieldValidation: "Strict"})
	Expect(err).NotTo(HaveOccurred())
	for _, name := range []string{namespace, "team-a", "team-b"} {
		apply(ctx, object(`{apiVersion: v1, kind: Namespace, metadata: {name: `+name+`, labels: {pod-security.kubernetes.io/warn: restricted}}}`))
	}
})

var _ = Describe("Chart", func() {
	DescribeTable("is taken by the API server, without a warning",
		func(ctx context.Context, values string) {
			warnings.forget()
			objects := rendered(ctx, filepath.Join("charts/phoneproof/ci", values))
			Expect(len(objects)).To(BeNumerically(">", 5))
			for _, o := range objects {
				if o.GroupVersionKind().Group != "monitoring.coreos.com" { // the Prometheus operator's, which is not here
					apply(ctx, o)
				}
			}
			Expect(warnings.all()).To(BeEmpty())
		},
		Entry("as it comes", "default-values.yaml"),
		Entry("for some namespaces", "namespaced-values.yaml"),
		Entry("with everything", "everything-values.yaml"),
	)

	It("warns of what Pod Security does not take, so that no warning means something", func(ctx context.Context) {
		warnings.forget()
		loose := only(rendered(ctx, "charts/phoneproof/ci/default-values.yaml"), "Deployment")
		loose.SetName("loose")
		Expect(unstructured.SetNestedMap(loose.Object, map[string]any{}, "spec", "template", "spec", "securityContext")).To(Succeed())
		apply(ctx, loose)
		Expect(warnings.all()).To(ContainElement(ContainSubstring("PodSecurity")))
	})

	It("gives the roles the rules of files/rbac", func(ctx context.Context) {
		objects := rendered(ctx, "charts/phoneproof/ci/default-values.yaml")
		for file, name := range map[string]string{
			"role.yaml": "phoneproof-operator", "server_kubernetes_role.yaml": "phoneproof-server-kubernetes",
			"server_postgresql_role.yaml": "phoneproof-server-postgresql",
		} {
			var want rbacv1.ClusterRole
			Expect(repository.Decode(&want, repository.Roles, file)).To(Succeed())
			got := typed[rbacv1.ClusterRole](named(objects, "ClusterRole", name))
			Expect(got.Rules).To(Equal(want.Rules), name)
			Expect(got.Rules).NotTo(BeEmpty())
		}
	})

	It("refuses requests made by hand where nothing would work on them, and no others", func(ctx context.Context) {
		for _, o := range rendered(ctx, "charts/phoneproof/ci/default-values.yaml") {
			apply(ctx, o)
		}
		Eventually(func() error { // a CRD that was made just now is not served yet
			return api.Apply(ctx, client.ApplyConfigurationFromUnstructured(sample("postgresql")), client.ForceOwnership)
		}).WithTimeout(time.Minute).Should(Succeed())
		apply(ctx, sample("whatsapp"))
		byHand := func(project string) error {
			request := sample("verificationrequest")
			request.SetName("")
			request.SetGenerateName("vr-")
			Expect(unstructured.SetNestedField(request.Object, project, "spec", "projectRef", "name")).To(Succeed())
			return api.Create(ctx, request)
		}
		Eventually(byHand).WithArguments("shop-large").WithTimeout(time.Minute).Should(SatisfyAll(
			Satisfy(apierrors.IsInvalid), MatchError(ContainSubstring("VerificationProject shop-large keeps its requests in PostgreSQL"))))
		Expect(byHand(sample("whatsapp").GetName())).To(Succeed())
		Expect(byHand("not-made-yet")).To(Succeed())
	})

	It("gives the operator flags that it has", func(ctx context.Context) {
		help := exec.CommandContext(ctx, "go", "run", "./cmd/phoneproof", "operator", "--help")
		help.Dir = root
		usage, err := help.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s", usage)
		objects := rendered(ctx, "charts/phoneproof/ci/everything-values.yaml")
		operator := typed[appsv1.Deployment](only(objects, "Deployment"))
		args := operator.Spec.Template.Spec.Containers[0].Args
		Expect(args[0]).To(Equal("operator"))
		for _, arg := range args[1:] {
			flag, _, _ := strings.Cut(arg, "=")
			Expect(string(usage)).To(ContainSubstring(flag+" "), "flags of phoneproof operator")
		}
	})
})

// rendered returns what Helm makes of the chart with a file of values.
func rendered(ctx context.Context, values string) []*unstructured.Unstructured {
	GinkgoHelper()
	template := exec.CommandContext(ctx, "go", "tool", "-modfile=hack/tools/helm/go.mod", "helm.sh/helm/v4/cmd/helm",
		"template", "phoneproof", "charts/phoneproof", "--namespace", namespace, "--values", values)
	template.Dir = root
	var stderr bytes.Buffer
	template.Stderr = &stderr
	out, err := template.Output()
	Expect(err).NotTo(HaveOccurred(), stderr.String())
	var objects []*unstructured.Unstructured
	for text := range strings.SplitSeq("\n"+string(out), "\n---\n") {
		if o := object(text); len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
	return objects
}

func object(text string) *unstructured.Unstructured {
	GinkgoHelper()
	var o unstructured.Unstructured
	Expect(yaml.Unmarshal([]byte(text), &o.Object)).To(Succeed())
	return &o
}

// sample returns the last object of a file in config/samples, in a namespace of the tests.
func sample(name string) *unstructured.Unstructured {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join(root, "config/samples", name+".yaml"))
	Expect(err).NotTo(HaveOccurred())
	documents := strings.Split(string(content), "\n---\n")
	o := object(documents[len(documents)-1])
	o.SetNamespace("team-a")
	return o
}

func apply(ctx context.Context, o *unstructured.Unstructured) {
	GinkgoHelper()
	Expect(api.Apply(ctx, client.ApplyConfigurationFromUnstructured(o.DeepCopy()), client.ForceOwnership)).
		To(Succeed(), "%s %s", o.GetKind(), o.GetName())
}

// only returns the one object of a kind.
func only(objects []*unstructured.Unstructured, kind string) *unstructured.Unstructured {
	GinkgoHelper()
	var found []*unstructured.Unstructured
	for _, o := range objects {
		if o.GetKind() == kind {
			found = append(found, o)
		}
	}
	Expect(found).To(HaveLen(1), kind)
	return found[0]
}

func named(objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	GinkgoHelper()
	for _, o := range objects {
		if o.GetKind() == kind && o.GetName() == name {
			return o
		}
	}
	Fail("no " + kind + " " + name)
	return nil
}

func typed[T any](o *unstructured.Unstructured) T {
	GinkgoHelper()
	var t T
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &t)).To(Succeed())
	return t
}

// collected are the warnings of an API server.
type collected struct {
	mutex sync.Mutex
	texts []string
}

// HandleWarningHeader keeps a warning.
func (c *collected) HandleWarningHeader(_ int, _, text string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.texts = append(c.texts, text)
}

func (c *collected) all() []string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return append([]string{}, c.texts...)
}

func (c *collected) forget() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.texts = nil
}
