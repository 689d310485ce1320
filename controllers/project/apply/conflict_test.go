package apply_test

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/apply"
	"github.com/phoneproof/phoneproof/controllers/project/render"
	"github.com/phoneproof/phoneproof/controllers/project/render/rendertest"
)

// everything is the case of a project with a child of every kind.
func everything() rendertest.Case {
	c := smallest()
	c.Project.Spec.Server.Autoscaling = &verifyv1.Autoscaling{MaxReplicas: 10}
	c.Project.Spec.Server.PodDisruptionBudget = &verifyv1.PodDisruptionBudget{}
	c.Project.Spec.NetworkPolicy = &verifyv1.NetworkPolicy{}
	c.Project.Spec.Expose.Ingress = &verifyv1.IngressSettings{Host: "verify.example.com"}
	c.Project.Spec.Expose.HTTPRoute = &verifyv1.HTTPRouteSettings{ParentRefs: []verifyv1.GatewayRef{{Name: "public"}}}
	return c
}

// kinds lists the kinds of everything.
var kinds = []string{
	"ServiceAccount", "RoleBinding", "NetworkPolicy", "Service", "Deployment", "PodDisruptionBudget", "HorizontalPodAutoscaler",
	"Ingress", "HTTPRoute",
}

// takeNames creates foreign objects under the names of a project's children of these kinds.
func (w *appliedProject) takeNames(ctx context.Context, kinds []string, change func(*unstructured.Unstructured)) []*unstructured.Unstructured {
	GinkgoHelper()
	w.project.Default()
	o := w.options
	o.Image = "foreign"
	var taken []*unstructured.Unstructured
	for _, child := range render.Project(w.project, o).List() {
		object := asUnstructured(child)
		if !slices.Contains(kinds, object.GetKind()) {
			continue
		}
		object.SetOwnerReferences(nil)
		change(object)
		Expect(admin.Create(ctx, object, client.FieldOwner("foreign"))).To(Succeed())
		taken = append(taken, object)
	}
	Expect(taken).To(HaveLen(len(kinds)))
	return taken
}

func unlabelled(o *unstructured.Unstructured) { o.SetLabels(nil) }

func asUnstructured(child runtime.ApplyConfiguration) *unstructured.Unstructured {
	GinkgoHelper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child)
	Expect(err).NotTo(HaveOccurred())
	object := &unstructured.Unstructured{Object: content}
	Expect(object.GetKind()).NotTo(BeEmpty())
	return object
}

func expectUntouched(ctx context.Context, objects []*unstructured.Unstructured) {
	GinkgoHelper()
	for _, before := range objects {
		now := before.DeepCopy()
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(before), now)).To(Succeed())
		Expect(now).To(Equal(before))
	}
}

var _ = Describe("A foreign object under the name of a child", func() {
	for name, change := range map[string]func(*unstructured.Unstructured){
		"with no owner": func(*unstructured.Unstructured) {},
		"with no label": func(o *unstructured.Unstructured) { o.SetLabels(nil) },
		"of another kind": func(o *unstructured.Unstructured) {
			o.SetOwnerReferences([]metav1.OwnerReference{owner("Shop", rendertest.UID+"x", true)})
		},
		"of an older project of that name": func(o *unstructured.Unstructured) {
			o.SetOwnerReferences([]metav1.OwnerReference{owner("VerificationProject", rendertest.UID+"x", true)})
		},
		"that we own but do not control": func(o *unstructured.Unstructured) {
			o.SetOwnerReferences([]metav1.OwnerReference{owner("VerificationProject", rendertest.UID, false)})
		},
	} {
		It("is a conflict and stays unchanged: "+name, func(ctx SpecContext) {
			w := newAppliedProject(ctx, everything())
			taken := w.takeNames(ctx, kinds, change)
			result, _ := w.apply(ctx)
			expectUntouched(ctx, taken)
			Expect(result.Applied).To(BeEmpty())
			Expect(append(result.Conflicts, result.Waiting...)).To(HaveLen(len(taken)))
			Expect(result.Conflicts).To(Equal(w.refs("ServiceAccount", "NetworkPolicy", "Service", "PodDisruptionBudget")))
		})
	}

	for _, kind := range kinds {
		It("holds back what depends on it, and nothing else: "+kind, func(ctx SpecContext) {
			w := newAppliedProject(ctx, everything())
			taken := w.takeNames(ctx, []string{kind}, unlabelled)
			w.applier.Client = emptyCache{w.applier.Client}
			result, _ := w.apply(ctx)
			expectUntouched(ctx, taken)
			about := map[string][]string{
				"ServiceAccount": {"RoleBinding", "Deployment", "HorizontalPodAutoscaler"},
				"Deployment":     {"HorizontalPodAutoscaler"},
				"Service":        {"Ingress", "HTTPRoute"},
			}[kind]
			Expect(kindsOf(result.Conflicts)).To(Equal([]string{kind}))
			Expect(kindsOf(result.Waiting)).To(Equal(about))
			Expect(result.Applied).To(HaveLen(len(kinds) - 1 - len(about)))
		})

		It("stays unchanged even if it appears right before the child would be created: "+kind, func(ctx SpecContext) {
			w := newAppliedProject(ctx, everything())
			var taken []*unstructured.Unstructured
			w.applier.Client = beforeApply{w.applier.Client, func(ctx context.Context, child *unstructured.Unstructured) {
				if child.GetKind() == kind {
					foreign := child.DeepCopy()
					foreign.SetOwnerReferences(nil)
					foreign.SetResourceVersion("")
					Expect(admin.Create(ctx, foreign, client.FieldOwner("foreign"))).To(Succeed())
					taken = append(taken, foreign)
				}
			}}
			result, _ := w.apply(ctx)
			Expect(taken).To(HaveLen(1))
			expectUntouched(ctx, taken)
			Expect(kindsOf(result.Conflicts)).To(Equal([]string{kind}))
		})
	}

	It("is not scaled by an autoscaler of ours", func(ctx SpecContext) {
		w := newAppliedProject(ctx, everything())
		w.applyAll(ctx)
		Expect(admin.Delete(ctx, read[appsv1.Deployment](ctx, w))).To(Succeed())
		taken := w.takeNames(ctx, []string{"Deployment"}, unlabelled)
		result, _ := w.apply(ctx)
		expectUntouched(ctx, taken)
		Expect(kindsOf(result.Deleted)).To(Equal([]string{"HorizontalPodAutoscaler"}))
		_, writes := w.apply(ctx)
		Expect(writes).To(BeZero())

		Expect(admin.Delete(ctx, taken[0])).To(Succeed())
		result, _ = w.apply(ctx)
		Expect(kindsOf(result.Applied)).To(Equal([]string{"Deployment", "HorizontalPodAutoscaler"}))
	})

	It("is not exposed by what exposes our Service", func(ctx SpecContext) {
		w := newAppliedProject(ctx, everything())
		w.applyAll(ctx)
		Expect(admin.Delete(ctx, read[corev1.Service](ctx, w))).To(Succeed())
		taken := w.takeNames(ctx, []string{"Service"}, unlabelled)
		result, _ := w.apply(ctx)
		expectUntouched(ctx, taken)
		Expect(kindsOf(result.Deleted)).To(ConsistOf("Ingress", "HTTPRoute"))
		_, writes := w.apply(ctx)
		Expect(writes).To(BeZero())

		Expect(admin.Delete(ctx, taken[0])).To(Succeed())
		result, _ = w.apply(ctx)
		Expect(kindsOf(result.Applied)).To(Equal([]string{"Service", "Ingress", "HTTPRoute"}))
	})

	It("is found even if the cache does not show it, and then stays unchanged", func(ctx SpecContext) {
		w := newAppliedProject(ctx, everything())
		taken := w.takeNames(ctx, kinds, unlabelled)
		w.applier.Client = emptyCache{w.applier.Client}
		result, _ := w.apply(ctx)
		expectUntouched(ctx, taken)
		Expect(append(result.Conflicts, result.Waiting...)).To(HaveLen(len(taken)))
	})

	It("stays unchanged even if it replaces a child right before that is changed", func(ctx SpecContext) {
		w := newAppliedProject(ctx, everything())
		w.applyAll(ctx)
		w.options.Image = "another"
		w.project.Spec.Expose.Service.Annotations = map[string]verifyv1.AnnotationValue{"a": "b"}
		w.project.Spec.Expose.Ingress.Host = "other.example.com"
		w.project.Spec.Expose.HTTPRoute.Hostnames = []verifyv1.Hostname{"other.example.com"}
		var taken []*unstructured.Unstructured
		w.applier.Client = beforeApply{w.applier.Client, func(ctx context.Context, child *unstructured.Unstructured) {
			Expect(admin.Delete(ctx, child.DeepCopy())).To(Succeed())
			foreign := child.DeepCopy()
			foreign.SetOwnerReferences(nil)
			foreign.SetResourceVersion("")
			foreign.SetUID("")
			Expect(admin.Create(ctx, foreign, client.FieldOwner("foreign"))).To(Succeed())
			taken = append(taken, foreign)
		}}
		result, _, err := w.tryApply(ctx, apply.Request{})
		Expect(taken).To(HaveLen(4))
		expectUntouched(ctx, taken)
		Expect(result.Applied).To(BeEmpty())
		Expect(result.Rejections).To(BeEmpty())
		Expect(err).To(HaveOccurred(), "so that it is retried")
	})

	It("stops nothing that does not depend on it", func(ctx SpecContext) {
		w := newAppliedProject(ctx, smallest())
		foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.project.Namespace, Name: w.name()}}
		foreign.Spec.Ports = []corev1.ServicePort{{Port: 1}}
		Expect(admin.Create(ctx, foreign)).To(Succeed())
		result, _ := w.apply(ctx)
		Expect(result.Conflicts).To(Equal(w.refs("Service")))
		Expect(result.Applied).To(HaveLen(3))

		Expect(admin.Delete(ctx, foreign)).To(Succeed())
		result, writes := w.apply(ctx)
		Expect(result.Applied).To(Equal(w.refs("Service")), "once it is gone")
		Expect(writes).To(Equal(1))
	})

	It("costs nothing if the cache shows it", func(ctx SpecContext) {
		w := newAppliedProject(ctx, everything())
		w.takeNames(ctx, kinds, unlabelled)
		_, writes := w.apply(ctx)
		Expect(writes).To(BeZero())
	})
})

var _ = Describe("A child that the cache does not show", func() {
	It("is found on the API server", func(ctx SpecContext) {
		w := newAppliedProject(ctx, everything())
		w.applyAll(ctx)
		w.applier.Client = emptyCache{w.applier.Client}
		result, _ := w.apply(ctx)
		Expect(result).To(Equal(apply.Result{}))
	})

	It("gets back the label that the cache needs", func(ctx SpecContext) {
		w := newAppliedProject(ctx, smallest())
		w.applyAll(ctx)
		d := read[appsv1.Deployment](ctx, w)
		d.Labels = nil
		Expect(admin.Update(ctx, d)).To(Succeed())
		observed := w.observe(ctx)
		w.applier.Client = emptyCache{w.applier.Client}
		result, _, err := w.tryApply(ctx, apply.Request{Observed: observed})
		Expect(err).NotTo(HaveOccurred())
		Expect(result.Applied).To(Equal(w.refs("Deployment")))
		Expect(read[appsv1.Deployment](ctx, w).Labels).To(Equal(render.Labels(w.project)))
	})
})

var _ = Describe("A child that is no longer wanted", func() {
	It("goes", func(ctx SpecContext) {
		w := newAppliedProject(ctx, everything())
		w.applyAll(ctx)
		w.project.Spec = smallest().Project.Spec
		result, writes := w.apply(ctx)
		Expect(result.Deleted).To(ConsistOf(
			w.refs("HTTPRoute", "HorizontalPodAutoscaler", "Ingress", "NetworkPolicy", "PodDisruptionBudget")))
		Expect(writes).To(Equal(5))
		_, writes = w.apply(ctx)
		Expect(writes).To(BeZero())
		Expect(w.get(ctx, &networkingv1.Ingress{})).To(MatchError(ContainSubstring("not found")))
	})

	It("is deleted whatever its name", func(ctx SpecContext) {
		w := newAppliedProject(ctx, smallest())
		w.applyAll(ctx)
		other := asUnstructured(render.Service(w.project))
		other.SetName("from-another-version")
		Expect(admin.Create(ctx, other)).To(Succeed())
		result, _ := w.apply(ctx)
		Expect(result.Deleted).To(Equal([]apply.Ref{{Kind: "Service", Name: "from-another-version"}}))
	})

	It("stays if it is foreign", func(ctx SpecContext) {
		w := newAppliedProject(ctx, everything())
		taken := w.takeNames(ctx, kinds, func(*unstructured.Unstructured) {})
		w.project.Spec = smallest().Project.Spec
		w.project.Name = "another"
		w.apply(ctx)
		expectUntouched(ctx, taken)
	})

	It("stays if it was changed since it was observed", func(ctx SpecContext) {
		w := newAppliedProject(ctx, everything())
		w.applyAll(ctx)
		w.project.Spec = smallest().Project.Spec
		observed := w.observe(ctx)
		ingress := read[networkingv1.Ingress](ctx, w)
		ingress.OwnerReferences = nil
		Expect(admin.Update(ctx, ingress)).To(Succeed())
		result, _, err := w.tryApply(ctx, apply.Request{Observed: observed})
		Expect(err).To(MatchError(ContainSubstring("delete Ingress " + w.name())))
		Expect(result.Deleted).To(HaveLen(4))
		read[networkingv1.Ingress](ctx, w)
	})
})

func kindsOf(refs []apply.Ref) []string {
	var kinds []string
	for _, ref := range refs {
		kinds = append(kinds, ref.Kind)
	}
	return kinds
}

func owner(kind string, uid types.UID, controls bool) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: verifyv1.GroupVersion.String(), Kind: kind, Name: "shop", UID: uid, Controller: new(controls)}
}

// beforeApply calls a function before each Apply.
type beforeApply struct {
	client.Client

	do func(context.Context, *unstructured.Unstructured)
}

func (b beforeApply) Apply(ctx context.Context, child runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	b.do(ctx, asUnstructured(child))
	return b.Client.Apply(ctx, child, options...)
}
