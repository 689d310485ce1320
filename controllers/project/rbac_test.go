package project

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// updateVariable makes the specs below write the API server's answer instead of comparing it.
const updateVariable = "PHONEPROOF_UPDATE"

var _ = Describe("The operator's rights", func() {
	// The API server's answer for a token, as "kubectl auth can-i --list" shows it.
	It("are exactly those of the golden file", func(ctx SpecContext) {
		expectRights(ctx, operator, newNamespace(ctx), "operator.txt")
	})

	DescribeTable("do not include",
		func(ctx SpecContext, verbs []string, group, resource, name string) {
			namespace := newNamespace(ctx)
			for _, verb := range verbs {
				resource, sub, _ := strings.Cut(resource, "/")
				review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
					ResourceAttributes: &authorizationv1.ResourceAttributes{
						Namespace: namespace, Verb: verb, Group: group, Resource: resource, Subresource: sub, Name: name,
					},
				}}
				answer, err := clientsOf(operator).AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(answer.Status.Allowed).To(BeFalse(), verb)
			}
		},
		Entry("Secrets", []string{"get", "list", "watch", "create", "update", "patch", "delete"}, "", "secrets", ""),
		Entry("requests", []string{"get", "list", "watch", "create", "update", "patch", "delete"}, verifyv1.GroupVersion.Group, "verificationrequests", ""),
		Entry("the requests' status", []string{"get", "update", "patch"}, verifyv1.GroupVersion.Group, "verificationrequests/status", ""),
		Entry("what a project declares", []string{"create", "update", "patch", "delete"}, verifyv1.GroupVersion.Group, "verificationprojects", ""),
		Entry("pods", []string{"get", "list", "create", "delete"}, "", "pods", ""),
		Entry("processes in pods", []string{"create", "get"}, "", "pods/exec", ""),
		Entry("tokens", []string{"create"}, "", "serviceaccounts/token", ""),
		Entry("other identities", []string{"impersonate"}, "", "users", ""),
		Entry("roles", []string{"create", "update", "patch", "delete", "escalate"}, rbacv1.GroupName, "roles", ""),
		Entry("cluster roles", []string{"create", "update", "patch", "delete", "escalate"}, rbacv1.GroupName, "clusterroles", ""),
		Entry("bindings of the cluster", []string{"create", "update", "patch"}, rbacv1.GroupName, "clusterrolebindings", ""),
		Entry("another role to bind", []string{"bind"}, rbacv1.GroupName, "clusterroles", "cluster-admin"),
		Entry("its own role to bind", []string{"bind"}, rbacv1.GroupName, "clusterroles", "phoneproof-operator"),
	)

	It("let it bind the servers' roles and no other role", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		bind := func(kind, role string) error {
			_, err := clientsOf(operator).RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{GenerateName: "attempt-"},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
				Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "another"}},
			}, metav1.CreateOptions{})
			return err
		}
		Expect(bind("ClusterRole", "phoneproof-server-kubernetes")).To(Succeed())
		Expect(bind("ClusterRole", "phoneproof-server-postgresql")).To(Succeed())
		Expect(bind("ClusterRole", "cluster-admin")).To(Satisfy(apierrors.IsForbidden))
		Expect(bind("ClusterRole", "system:kube-controller-manager")).To(Satisfy(apierrors.IsForbidden))
		Expect(admin.Create(ctx, &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "secrets"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}},
		})).To(Succeed())
		Expect(bind("Role", "secrets")).To(Satisfy(apierrors.IsForbidden))
	})
})

var _ = Describe("The rights of a project's pods", func() {
	DescribeTable("are exactly those of the golden file",
		func(ctx SpecContext, storage verifyv1.Storage, golden string) {
			startSteppedOperator(ctx, operator, usual())
			project := newProject(newNamespace(ctx), "shop")
			project.Spec.Storage = storage
			makeReady(ctx, create(ctx, project))
			expectRights(ctx, asAccount(ctx, project.Namespace, "phoneproof-shop"), project.Namespace, golden)
		},
		Entry("with its requests as objects", verifyv1.Storage{Type: verifyv1.StorageKubernetes}, "server_kubernetes.txt"),
		Entry("with its requests in PostgreSQL", verifyv1.Storage{
			Type: verifyv1.StoragePostgreSQL, PostgreSQL: &verifyv1.PostgreSQL{URISecretRef: verifyv1.URISecretRef{Name: "db"}},
		}, "server_postgresql.txt"),
	)
})

func clientsOf(config *rest.Config) *clientset.Clientset {
	GinkgoHelper()
	c, err := clientset.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	return c
}

// expectRights compares the rights of an account in a namespace with a file.
func expectRights(ctx context.Context, config *rest.Config, namespace, golden string) {
	GinkgoHelper()
	got := awaitRights(ctx, config, namespace, Not(BeEmpty()))
	file := filepath.Join("testdata", "rights", golden)
	if os.Getenv(updateVariable) != "" {
		Expect(os.WriteFile(file, []byte(strings.Join(got, "\n")+"\n"), 0o600)).To(Succeed())
	}
	want, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	Expect(got).To(Equal(lines(string(want))))
}

// awaitRights returns the rights of an account once they match, because the authorizer sees a binding through a watch.
func awaitRights(ctx context.Context, config *rest.Config, namespace string, match types.GomegaMatcher) (got []string) {
	GinkgoHelper()
	Eventually(func() []string {
		got = rights(ctx, config, namespace)
		return got
	}).WithContext(ctx).Should(match)
	return got
}

// rights returns what the API server allows an account in a namespace, without what it allows to all.
func rights(ctx context.Context, config *rest.Config, namespace string) []string {
	GinkgoHelper()
	review, err := clientsOf(config).AuthorizationV1().SelfSubjectRulesReviews().Create(ctx,
		&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	var out []string
	for _, rule := range review.Status.ResourceRules {
		if slices.Contains(rule.Resources, "selfsubjectaccessreviews") || slices.Contains(rule.Resources, "selfsubjectreviews") ||
			slices.Contains(rule.Resources, "clustertrustbundles") {
			continue
		}
		slices.Sort(rule.Verbs)
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				line := strings.TrimSuffix(resource+"."+group, ".") + " " + strings.Join(rule.Verbs, ",")
				if len(rule.ResourceNames) > 0 {
					slices.Sort(rule.ResourceNames)
					line += fmt.Sprintf(" of %s", strings.Join(rule.ResourceNames, ","))
				}
				out = append(out, line)
			}
		}
	}
	slices.Sort(out)
	return out
}
