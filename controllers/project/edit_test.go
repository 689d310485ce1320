package project

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// docs/security.md documents this for administrators. If Kubernetes ever removes tokens from the role, the page can be corrected.
var _ = Describe("The built-in role edit", func() {
	It("lets its holder verify numbers only with a token of a project's pods", func(ctx SpecContext) {
		startSteppedOperator(ctx, operator, usual())
		project := newProject(newNamespace(ctx), "shop")
		makeReady(ctx, create(ctx, project))
		namespace := project.Namespace
		Expect(admin.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "developer"}})).To(Succeed())
		Expect(admin.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "developer"},
			// A controller, which does not run here, adds these rules to edit.
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:aggregate-to-edit"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "developer"}},
		})).To(Succeed())
		developer := asAccount(ctx, namespace, "developer")

		awaitRights(ctx, developer, namespace, ContainElement(HavePrefix("serviceaccounts/token ")))
		token, err := clientsOf(developer).CoreV1().ServiceAccounts(namespace).CreateToken(ctx, "phoneproof-shop",
			&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(maySetStatus(ctx, developer, namespace)).To(BeFalse())
		minted := rest.AnonymousClientConfig(developer)
		minted.BearerToken = token.Status.Token
		Expect(maySetStatus(ctx, minted, namespace)).To(BeTrue())
	})
})

var _ = Describe("An Ingress with a forged owner reference to a project", func() {
	It("does not keep a host from another namespace", func(ctx SpecContext) {
		const host = "forged.example.com"
		startSteppedOperator(ctx, operator, usual())
		evil, victim := newTenant(ctx), newTenant(ctx)
		Expect(admin.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: evil.namespace, Name: "edit"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:aggregate-to-edit"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: evil.namespace, Name: "tenant"}},
		})).To(Succeed())
		owner := evil.create(ctx, "owner", func(*spec) {})
		makeReady(ctx, owner) // an unfinished rollout would take a turn from other specs
		forged := &networkingv1.Ingress{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: evil.namespace, Name: "forged", Labels: map[string]string{verifyv1.ProjectLabel: "unseen"},
				OwnerReferences: []metav1.OwnerReference{
					*metav1.NewControllerRef(owner, verifyv1.GroupVersion.WithKind(verifyv1.VerificationProjectKind)),
				},
			},
			Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: host}}},
		}
		forged.OwnerReferences[0].BlockOwnerDeletion = nil
		awaitRights(ctx, evil.config, evil.namespace, ContainElement(HavePrefix("ingresses.networking.k8s.io ")))
		Expect(evil.Create(ctx, forged)).To(Succeed())

		shop := victim.create(ctx, "shop", func(s *spec) {
			s.BaseURL, s.Expose.Ingress = "https://"+host, &verifyv1.IngressSettings{}
		})
		makeReady(ctx, shop)
		Expect(ingressHost(ctx, shop)).To(Equal(host))
		Expect(find(ctx, shop, verifyv1.ConditionShared)).To(BeZero())
	})
})

// maySetStatus reports whether the status of a request may be patched, which verifies its number.
func maySetStatus(ctx context.Context, config *rest.Config, namespace string) bool {
	GinkgoHelper()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "patch", Group: verifyv1.GroupVersion.Group, Resource: "verificationrequests", Subresource: "status",
		},
	}}
	answer, err := clientsOf(config).AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return answer.Status.Allowed
}
