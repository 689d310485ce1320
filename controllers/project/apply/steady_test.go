package apply_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/phoneproof/phoneproof/controllers/project/apply"
	"github.com/phoneproof/phoneproof/controllers/project/render"
	"github.com/phoneproof/phoneproof/controllers/project/render/rendertest"
)

var _ = Describe("A steady project", func() {
	for _, c := range rendertest.Cases() {
		It("costs one write for each child, and then none: "+c.Name, func(ctx SpecContext) {
			w := newAppliedProject(ctx, c)
			children := len(render.Project(w.project, w.options).List())

			result, writes := w.apply(ctx)
			Expect(writes).To(Equal(children))
			Expect(result.Applied).To(HaveLen(children))
			Expect(result.Conflicts).To(BeEmpty())
			Expect(result.Rejections).To(BeEmpty())

			result, writes = w.apply(ctx)
			Expect(writes).To(BeZero(), "%v", w.writes.all())
			Expect(result).To(Equal(apply.Result{}))
		})
	}

	It("writes nothing after foreign additions", func(ctx SpecContext) {
		w := newAppliedProject(ctx, smallest())
		w.applyAll(ctx)
		d := read[appsv1.Deployment](ctx, w)
		d.Annotations = map[string]string{"example.com/team": "shop"}
		d.Labels["example.com/team"] = "shop"
		d.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"} // rollout restart
		Expect(admin.Update(ctx, d)).To(Succeed())
		d.Annotations["example.com/host"] = "" // a change of ours that is no apply, as for a denied host
		Expect(admin.Update(ctx, d, apply.FieldOwner)).To(Succeed())
		rolls, err := apply.Rolls(w.observe(ctx), render.Project(w.project, w.options))
		Expect(err).NotTo(HaveOccurred())
		Expect(rolls).To(BeFalse())
		_, writes := w.apply(ctx)
		Expect(writes).To(BeZero())
		d = read[appsv1.Deployment](ctx, w)
		Expect(d.Labels).To(HaveKey("example.com/team"))
		Expect(d.Spec.Template.Annotations).To(HaveKey("kubectl.kubernetes.io/restartedAt"))
	})

	It("writes nothing after a foreign owner was added", func(ctx SpecContext) {
		w := newAppliedProject(ctx, everything())
		w.applyAll(ctx)
		for _, child := range render.Project(w.project, w.options).List() {
			object := asUnstructured(child)
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
			object.SetOwnerReferences(append(object.GetOwnerReferences(), owner("Shop", rendertest.UID+"x", false)))
			Expect(admin.Update(ctx, object)).To(Succeed())
		}
		_, writes := w.apply(ctx)
		Expect(writes).To(BeZero(), "%v", w.writes.all())
	})

	It("is not corrected for ever if the cluster's admission changes it", func(ctx SpecContext) {
		w := newAppliedProject(ctx, smallest())
		rewriteImages(ctx, w.project.Namespace)
		w.apply(ctx)
		Expect(read[appsv1.Deployment](ctx, w).Spec.Template.Spec.Containers[0].Image).To(Equal("mirror.example.com/phoneproof"))
		before := read[appsv1.Deployment](ctx, w)
		result, _ := w.apply(ctx)
		Expect(result).To(Equal(apply.Result{}))
		Expect(read[appsv1.Deployment](ctx, w)).To(Equal(before))
	})
})

var _ = Describe("Drift", func() {
	var w *appliedProject

	BeforeEach(func(ctx SpecContext) {
		w = newAppliedProject(ctx, smallest())
		w.applyAll(ctx)
	})

	// expectOneWrite applies until nothing is left to do, which takes one write.
	expectOneWrite := func(ctx SpecContext) {
		GinkgoHelper()
		_, writes := w.apply(ctx)
		Expect(writes).To(Equal(1), "%v", w.writes.all())
		_, writes = w.apply(ctx)
		Expect(writes).To(BeZero(), "%v", w.writes.all())
	}

	It("by an edit is corrected by one write", func(ctx SpecContext) {
		d := read[appsv1.Deployment](ctx, w)
		d.Spec.Replicas = new(int32(0))
		d.Spec.Template.Spec.Containers[0].Image = "evil"
		d.Spec.Template.Spec.Containers[0].Args = append(d.Spec.Template.Spec.Containers[0].Args, "--store=memory")
		delete(d.Labels, "app.kubernetes.io/instance")
		Expect(admin.Update(ctx, d)).To(Succeed())
		expectOneWrite(ctx)
		d = read[appsv1.Deployment](ctx, w)
		Expect(*d.Spec.Replicas).To(BeEquivalentTo(2))
		Expect(d.Spec.Template.Spec.Containers[0].Image).To(Equal(w.options.Image))
		Expect(d.Spec.Template.Spec.Containers[0].Args).NotTo(ContainElement("--store=memory"))
		Expect(d.Labels).To(HaveKey("app.kubernetes.io/instance"))
	})

	It("by a client that takes a field with force is corrected by one write", func(ctx SpecContext) {
		service := render.Service(w.project)
		service.Labels, service.OwnerReferences, service.Spec.Ports = nil, nil, nil
		service.Spec.Selector = map[string]string{"app": "evil"}
		Expect(admin.Apply(ctx, service, client.FieldOwner("rival"), client.ForceOwnership)).To(Succeed())
		expectOneWrite(ctx)
		Expect(read[corev1.Service](ctx, w).Spec.Selector).To(Equal(render.Selector(w.project)))
	})

	It("by a subject that is added to our binding's own is corrected by one write", func(ctx SpecContext) {
		binding := &rbacv1.RoleBinding{}
		key := client.ObjectKey{Namespace: w.project.Namespace, Name: w.name() + "-kubernetes"}
		Expect(admin.Get(ctx, key, binding)).To(Succeed())
		binding.Subjects[0].Name = "evil"
		Expect(admin.Update(ctx, binding)).To(Succeed())
		expectOneWrite(ctx)
		Expect(admin.Get(ctx, key, binding)).To(Succeed())
		Expect(binding.Subjects).To(HaveLen(1))
		Expect(binding.Subjects[0].Name).To(Equal(w.name()))
	})

	It("by a container that repeats a key of ours does not stop us", func(ctx SpecContext) {
		d := read[appsv1.Deployment](ctx, w)
		container := &d.Spec.Template.Spec.Containers[0]
		container.Env = append(container.Env, corev1.EnvVar{Name: "GOMEMLIMIT", Value: "1"})
		Expect(admin.Update(ctx, d)).To(Succeed())
		result, writes := w.apply(ctx)
		Expect(writes).To(Equal(1))
		Expect(result.Rejections).To(BeEmpty())
		var values []string
		for _, env := range read[appsv1.Deployment](ctx, w).Spec.Template.Spec.Containers[0].Env {
			if env.Name == "GOMEMLIMIT" {
				values = append(values, env.Value)
			}
		}
		Expect(strings.Join(values, " ")).To(Equal("241591910"))
		_, writes = w.apply(ctx)
		Expect(writes).To(BeZero())
	})

	It("by the loss of the managed fields is corrected by one write", func(ctx SpecContext) {
		d := read[appsv1.Deployment](ctx, w)
		d.ManagedFields = []metav1.ManagedFieldsEntry{{}}
		Expect(admin.Update(ctx, d)).To(Succeed())
		Expect(read[appsv1.Deployment](ctx, w).ManagedFields).To(BeEmpty())
		expectOneWrite(ctx)
	})

	It("by a deletion is corrected by one write", func(ctx SpecContext) {
		Expect(admin.Delete(ctx, read[appsv1.Deployment](ctx, w))).To(Succeed())
		expectOneWrite(ctx)
		read[appsv1.Deployment](ctx, w)
	})

	It("by the loss of our label is corrected by one write", func(ctx SpecContext) {
		d := read[appsv1.Deployment](ctx, w)
		d.Labels = nil
		Expect(admin.Update(ctx, d)).To(Succeed())
		expectOneWrite(ctx)
		Expect(read[appsv1.Deployment](ctx, w).Labels).To(Equal(render.Labels(w.project)))
	})
})

// rewriteImages makes the API server replace the image of every Deployment in a namespace, and returns when it does.
func rewriteImages(ctx SpecContext, namespace string) {
	GinkgoHelper()
	name := "rewrite-images-in-" + namespace
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			FailurePolicy:      new(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
						Rule: admissionregistrationv1.Rule{
							APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"},
						},
					},
				}},
			},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{Expression: `[JSONPatch{
					op: "replace", path: "/spec/template/spec/containers/0/image", value: "mirror.example.com/phoneproof"}]`},
			}},
		},
	}
	Expect(admin.Create(ctx, policy)).To(Succeed())
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	}
	Expect(admin.Create(ctx, binding)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(admin.Delete(ctx, policy)).To(Succeed())
		Expect(admin.Delete(ctx, binding)).To(Succeed())
	})
	p := smallest().Project
	p.Namespace = namespace
	Eventually(func(g Gomega) {
		trial := asUnstructured(render.Deployment(p, rendertest.Options()))
		g.Expect(admin.Create(ctx, trial, client.DryRunAll)).To(Succeed())
		containers, _, err := unstructured.NestedSlice(trial.Object, "spec", "template", "spec", "containers")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(containers[0]).To(HaveKeyWithValue("image", "mirror.example.com/phoneproof"))
	}).WithTimeout(timeout).Should(Succeed())
}
