package v1alpha1_test

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/phoneproof/phoneproof/api/v1alpha1"
)

var _ = Describe("Samples", func() {
	files, err := filepath.Glob("../../config/samples/*.yaml")
	if err != nil || len(files) < 2 {
		panic("no samples")
	}
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		It("apply cleanly: "+filepath.Base(file), func(ctx context.Context) {
			namespace := newNamespace(ctx)
			for _, object := range readObjects(file) {
				sent := &unstructured.Unstructured{Object: normalizeNumbers(object)}
				sent.SetNamespace(namespace)
				Expect(api.Apply(ctx, client.ApplyConfigurationFromUnstructured(sent), client.FieldOwner("kubectl"))).To(Succeed())
				switch object["kind"] {
				case v1alpha1.VerificationProjectKind:
					expectSameProject(ctx, object)
				case v1alpha1.VerificationRequestKind:
					_, err := validateRequestInGo(object)
					Expect(err).NotTo(HaveOccurred())
				}
			}
		})
	}

	It("have projects that serve accepts as a project file", func() {
		var projects []string
		for _, file := range files {
			for _, text := range readDocuments(file) {
				if !bytes.Contains(text, []byte("\nkind: "+v1alpha1.VerificationProjectKind+"\n")) {
					continue
				}
				project, err := v1alpha1.DecodeProject(text)
				Expect(err).NotTo(HaveOccurred(), file)
				project.Default()
				Expect(project.Validate()).To(BeEmpty(), file)
				projects = append(projects, project.Name)
			}
		}
		Expect(projects).To(ConsistOf("hello", "shop", "shop-large", "shop-production", "shop-whatsapp"))
	})

	It("refer only to Secret keys that they include", func() {
		for _, file := range files {
			keys := map[v1alpha1.SecretKeyRef]bool{}
			for _, object := range readObjects(file) {
				data, _, _ := unstructured.NestedMap(object, "stringData")
				name, _, _ := unstructured.NestedString(object, "metadata", "name")
				for key := range data {
					keys[v1alpha1.SecretKeyRef{Name: name, Key: key}] = true
				}
				if object["kind"] == v1alpha1.VerificationProjectKind {
					project, err := validateProjectInGo(object)
					Expect(err).NotTo(HaveOccurred())
					for _, ref := range project.Spec.SecretRefs() {
						Expect(keys).To(HaveKey(ref), file)
					}
				}
			}
		}
	})
})

// The permissions that roles must never grant. The suites of the operator and the
// server check that roles grant enough, and those of kustomize that the API server
// accepts them.
var _ = Describe("Roles", func() {
	roles := func(pattern string) map[string]rbacv1.ClusterRole {
		files, err := filepath.Glob("../../charts/phoneproof/files/rbac/" + pattern)
		Expect(err).NotTo(HaveOccurred())
		out := map[string]rbacv1.ClusterRole{}
		for _, file := range files {
			for _, object := range readObjects(file) {
				if object["rules"] != nil {
					role := decodeAs[rbacv1.ClusterRole](object)
					out[role.Name] = role
				}
			}
		}
		Expect(out).NotTo(BeEmpty())
		return out
	}

	It("have no wildcard, no Secrets and no way to gain more rights", func() {
		for name, role := range roles("*.yaml") {
			for _, rule := range role.Rules {
				all := slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs)
				for _, never := range []string{"*", "secrets", "escalate", "impersonate", "pods/exec", "serviceaccounts/token"} {
					Expect(all).NotTo(ContainElement(never), name)
				}
			}
		}
	})

	It("let the operator bind two roles, and touch no VerificationRequest", func() {
		operator := roles("role.yaml")["phoneproof-operator"]
		var bind []string
		for _, rule := range operator.Rules {
			Expect(rule.Resources).NotTo(ContainElement(HavePrefix("verificationrequests")))
			if slices.Contains(rule.Verbs, "bind") {
				Expect(rule.Verbs).To(Equal([]string{"bind"}))
				Expect(rule.ResourceNames).NotTo(BeEmpty(), "bind without names binds any role")
				bind = append(bind, rule.ResourceNames...)
			}
		}
		Expect(bind).To(ConsistOf("phoneproof-server-kubernetes", "phoneproof-server-postgresql"))
	})

	It("give the server VerificationRequests with storage Kubernetes only", func() {
		servers := roles("server_*.yaml")
		without := slices.DeleteFunc(servers["phoneproof-server-kubernetes"].Rules, func(rule rbacv1.PolicyRule) bool {
			return slices.ContainsFunc(rule.Resources, func(r string) bool { return r == "verificationrequests" || r == "verificationrequests/status" })
		})
		Expect(without).To(Equal(servers["phoneproof-server-postgresql"].Rules))
	})

	It("do not grant VerificationRequests by aggregation", func() {
		for name, role := range roles("*.yaml") {
			if len(role.Labels) == 0 {
				continue
			}
			for _, rule := range role.Rules {
				Expect(rule.Resources).NotTo(ContainElement(HavePrefix("verificationrequests")), name)
			}
		}
	})
})

// readDocuments returns the documents of a YAML file unchanged.
func readDocuments(file string) [][]byte { return bytes.Split(mustRead(file), []byte("\n---\n")) }

// documents returns the objects of a YAML file.
func readObjects(file string) []map[string]any {
	var out []map[string]any
	for _, text := range readDocuments(file) {
		var object map[string]any
		if err := yaml.UnmarshalStrict(text, &object); err != nil {
			panic(file + ": " + err.Error())
		}
		if object != nil {
			out = append(out, object)
		}
	}
	return out
}
