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
			for _, object := range documents(file) {
				sent := &unstructured.Unstructured{Object: normal(object)}
				sent.SetNamespace(namespace)
				Expect(api.Apply(ctx, client.ApplyConfigurationFromUnstructured(sent), client.FieldOwner("kubectl"))).To(Succeed())
				switch object["kind"] {
				case v1alpha1.VerificationProjectKind:
					expectSameProject(ctx, object)
				case v1alpha1.VerificationRequestKind:
					_, err := requestInGo(object)
					Expect(err).NotTo(HaveOccurred())
				}
			}
		})
	}

	It("hold projects that serve takes as a project file", func() {
		var projects []string
		for _, file := range files {
			for _, text := range texts(file) {
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

	It("name only Secret keys that they bring along", func() {
		for _, file := range files {
			keys := map[v1alpha1.SecretKeyRef]bool{}
			for _, object := range documents(file) {
				data, _, _ := unstructured.NestedMap(object, "stringData")
				name, _, _ := unstructured.NestedString(object, "metadata", "name")
				for key := range data {
					keys[v1alpha1.SecretKeyRef{Name: name, Key: key}] = true
				}
				if object["kind"] == v1alpha1.VerificationProjectKind {
					project, err := projectInGo(object)
					Expect(err).NotTo(HaveOccurred())
					for _, ref := range project.Spec.SecretRefs() {
						Expect(keys).To(HaveKey(ref), file)
					}
				}
			}
		}
	})
})

// What the roles must never grant; the operator's and the server's own suites
// show that they grant enough. That the API server takes them is shown with
// everything else that kustomize builds.
var _ = Describe("Roles", func() {
	roles := func(pattern string) map[string]rbacv1.ClusterRole {
		files, err := filepath.Glob("../../config/rbac/" + pattern)
		Expect(err).NotTo(HaveOccurred())
		out := map[string]rbacv1.ClusterRole{}
		for _, file := range files {
			for _, object := range documents(file) {
				if object["rules"] != nil {
					role := typed[rbacv1.ClusterRole](object)
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

// texts returns the documents of a YAML file as they are written.
func texts(file string) [][]byte { return bytes.Split(mustRead(file), []byte("\n---\n")) }

// documents returns the objects of a YAML file.
func documents(file string) []map[string]any {
	var out []map[string]any
	for _, text := range texts(file) {
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
