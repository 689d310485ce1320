package apply_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/apply"
)

var _ = Describe("A child that the API server refuses", func() {
	DescribeTable("is named with its field, and stops no other child",
		func(ctx SpecContext, change func(*verifyv1.VerificationProject), kind, field, message string) {
			w := newAppliedProject(ctx, everything())
			change(w.project)
			result, writes := w.apply(ctx)
			Expect(result.Rejections).To(HaveLen(1))
			rejection := result.Rejections[0]
			Expect(rejection.Ref).To(Equal(w.refs(kind)[0]))
			Expect(rejection.Field).To(Equal(field))
			Expect(rejection.Message).To(ContainSubstring(message))
			Expect(len(rejection.Message)).To(BeNumerically("<=", 256))
			Expect(result.Applied).To(HaveLen(8))
			Expect(writes).To(Equal(9))
		},
		Entry("invalid", func(p *verifyv1.VerificationProject) {
			p.Spec.Server.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "a", WhenUnsatisfiable: "Never"}}
		}, "Deployment", "spec.template.spec.topologySpreadConstraints[0].whenUnsatisfiable", "Never"),
		Entry("against the rules of apply", func(p *verifyv1.VerificationProject) {
			constraint := corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: "a", WhenUnsatisfiable: corev1.ScheduleAnyway}
			p.Spec.Server.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{constraint, constraint}
		}, "Deployment", "spec.template.spec.topologySpreadConstraints", "duplicate entries"),
		Entry("an empty peer", func(p *verifyv1.VerificationProject) {
			p.Spec.NetworkPolicy.IngressFrom = []networkingv1.NetworkPolicyPeer{{}}
		}, "NetworkPolicy", "spec.ingress[0].from[0]", "must specify a peer"),
		Entry("a host with an underscore", func(p *verifyv1.VerificationProject) { p.Spec.Expose.Ingress.Host = "a_b.example.com" },
			"Ingress", "spec.rules[0].host", "a lowercase RFC 1123 subdomain"),
		Entry("invalid to a custom resource", func(p *verifyv1.VerificationProject) {
			p.Spec.Expose.HTTPRoute.Hostnames = []verifyv1.Hostname{"_"}
		}, "HTTPRoute", "spec.hostnames[0]", "should match"),
		Entry("annotations that are too large in all", func(p *verifyv1.VerificationProject) {
			p.Spec.Expose.Ingress.Annotations = map[string]verifyv1.AnnotationValue{}
			for _, key := range "abcdefghijklmnop" {
				p.Spec.Expose.Ingress.Annotations[string(key)] = verifyv1.AnnotationValue(strings.Repeat("x", 20_000))
			}
		}, "Ingress", "metadata.annotations", "may not be more than"),
	)

	It("is refused for a quota", func(ctx SpecContext) {
		w := newAppliedProject(ctx, smallest())
		Expect(admin.Create(ctx, &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.project.Namespace, Name: "none"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/deployments.apps": resource.MustParse("0")}},
		})).To(Succeed())
		// The quota's controller, which does not run here, would write this.
		quota := &corev1.ResourceQuota{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: w.project.Namespace, Name: "none"}, quota)).To(Succeed())
		quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: corev1.ResourceList{"count/deployments.apps": resource.MustParse("0")}}
		Expect(admin.Status().Update(ctx, quota)).To(Succeed())
		Eventually(func(g Gomega) {
			result, _, err := w.tryApply(ctx, apply.Request{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(result.Rejections).To(HaveLen(1))
			g.Expect(result.Rejections[0].Ref).To(Equal(w.refs("Deployment")[0]))
			g.Expect(result.Rejections[0].Message).To(ContainSubstring("exceeded quota"))
		}).WithTimeout(timeout).Should(Succeed())
		Expect(w.get(ctx, &appsv1.Deployment{})).NotTo(Succeed())
	})

	// Attacks a retry of each project every two minutes, for as long as the cluster has no address for its Service.
	It("is refused for a range of addresses that is full, until one is free", func(ctx SpecContext) {
		w := newAppliedProject(ctx, smallest())
		namespace := w.project.Namespace
		DeferCleanup(func(ctx SpecContext) {
			Expect(admin.DeleteAllOf(ctx, &corev1.Service{}, client.InNamespace(namespace))).To(Succeed())
		})
		filler := func() *corev1.Service {
			return &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "filler-"},
				Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
			}
		}
		last := filler()
		for next := filler(); admin.Create(ctx, next) == nil; next = filler() {
			last = next
		}
		result, _ := w.apply(ctx)
		Expect(result.Rejections).To(HaveLen(1))
		Expect(result.Rejections[0].Ref).To(Equal(w.refs("Service")[0]))
		Expect(result.Rejections[0].Message).To(HaveSuffix("range is full"))
		Expect(result.Applied).To(HaveLen(3))

		Expect(admin.Delete(ctx, last)).To(Succeed())
		result, _ = w.apply(ctx)
		Expect(result.Applied).To(Equal(w.refs("Service")))
	})

	It("is refused for a missing right", func(ctx SpecContext) {
		w := newAppliedProject(ctx, smallest())
		config, err := plane.ServiceAccount(w.project.Namespace, "operator")
		Expect(err).NotTo(HaveOccurred())
		Expect(admin.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.project.Namespace, Name: "operator"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.project.Namespace, Name: "operator"}},
		})).To(Succeed())
		viewer, err := client.New(config, client.Options{})
		Expect(err).NotTo(HaveOccurred())
		observed := w.observe(ctx)
		w.applier.Client, w.applier.Live = emptyCache{viewer}, viewer
		result, _, err := w.tryApply(ctx, apply.Request{Observed: observed})
		Expect(err).NotTo(HaveOccurred())
		Expect(result.Rejections).To(HaveLen(4))
		Expect(result.Rejections[0].Message).To(ContainSubstring(`cannot patch resource "serviceaccounts"`))
	})

	It("is not refused, but deleted, with its namespace", func(ctx SpecContext) {
		w := newAppliedProject(ctx, smallest())
		Expect(admin.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.project.Namespace}})).To(Succeed())
		Eventually(func(g Gomega) { // admission sees it through a watch
			result, _, err := w.tryApply(ctx, apply.Request{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(result).To(Equal(apply.Result{}))
		}).WithTimeout(timeout).Should(Succeed())
	})
})
