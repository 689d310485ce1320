package project

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// eventuallySucceeds repeats a check until it succeeds, because a manager works in goroutines.
func eventuallySucceeds(ctx context.Context, check func()) {
	GinkgoHelper()
	Eventually(func() error { return InterceptGomegaFailure(check) }).WithContext(ctx).Should(Succeed())
}

// The other specs call Reconcile themselves. These show that a manager, with its cache, watches and workers, calls it in time.
var _ = Describe("An operator with a manager", func() {
	It("reconciles a project after each change of it, its children and its pods", func(ctx SpecContext) {
		startManager(ctx, operator, usual())
		project := create(ctx, newProject(newNamespace(ctx), "shop"))
		eventuallySucceeds(ctx, func() {
			expectCondition(ctx, project, verifyv1.ConditionReady, metav1.ConditionFalse, verifyv1.ReasonProgressing)
		})
		eventuallySucceeds(ctx, func() { makeReady(ctx, project) })

		By("correcting foreign changes of its children and its status")
		all := children(ctx, project)
		for _, object := range objectsOf(ctx, project.Namespace) { // quickly: the operator corrects it a few times, and then once a minute
			if metav1.IsControlledBy(object, project) {
				Expect(admin.Delete(ctx, object)).To(Succeed())
			}
		}
		eventuallySucceeds(ctx, func() { Expect(children(ctx, project)).To(Equal(all)) })
		eventuallySucceeds(ctx, func() { makeReady(ctx, project) })
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: project.Namespace, Name: "phoneproof-shop"}}
		const label = "app.kubernetes.io/managed-by"
		Expect(admin.Patch(ctx, service, client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata": {"labels": {"`+label+`": "another"}}}`)))).To(Succeed())
		eventuallySucceeds(ctx, func() {
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(service), service)).To(Succeed())
			Expect(service.Labels[label]).To(Equal("phoneproof-operator"))
		})
		Expect(admin.Status().Patch(ctx, project, client.RawPatch(types.MergePatchType, []byte(`{"status": {"observedGeneration": 99}}`)))).
			To(Succeed())
		eventuallySucceeds(ctx, func() { expectReady(ctx, project) })

		By("reporting pods that fail, with an Event")
		eventuallySucceeds(ctx, func() {
			d := deployment(ctx, project)
			d.Status.ReadyReplicas, d.Status.AvailableReplicas = 0, 0
			Expect(admin.Status().Update(ctx, d)).To(Succeed())
		})
		eventuallySucceeds(ctx, func() {
			expectCondition(ctx, project, verifyv1.ConditionReady, metav1.ConditionFalse, verifyv1.ReasonPodsUnavailable)
			expectEvent(ctx, project, corev1.EventTypeWarning, verifyv1.ReasonPodsUnavailable)
		})
		eventuallySucceeds(ctx, func() { makeReady(ctx, project) })

		By("carrying out an edit")
		eventuallySucceeds(ctx, func() { change(ctx, project, func(s *spec) { s.Suspend = new(true) }) })
		eventuallySucceeds(ctx, func() {
			expectCondition(ctx, project, verifyv1.ConditionReady, metav1.ConditionFalse, verifyv1.ReasonSuspended)
		})
	})

	It("reconciles the projects that wait for another one", func(ctx SpecContext) {
		const host, base = "smoke.example.com", "https://smoke.example.com"
		namespace := newNamespace(ctx)
		o := usual()
		o.MaxUnreadyRollouts = 1
		stop := startManager(ctx, operator, o)
		holder, waiting := newProject(namespace, "holder"), newProject(newNamespace(ctx), "waiting")
		exposeAt(base)(&holder.Spec)
		create(ctx, holder)
		eventuallySucceeds(ctx, func() { makeReady(ctx, holder) })
		eventuallySucceeds(ctx, func() { Expect(ingressHost(ctx, holder)).To(Equal(host)) })
		exposeAt(base)(&waiting.Spec)
		create(ctx, waiting)
		eventuallySucceeds(ctx, func() { setRollout(ctx, waiting, allReady) })
		eventuallySucceeds(ctx, func() {
			expectCondition(ctx, waiting, verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonHostInUse)
		})
		// Its own status requeues it once more. From then on only events about the holder can.
		Consistently(stalledReason).WithContext(ctx).WithArguments(ctx, waiting).WithTimeout(5 * settling).
			Should(Equal(verifyv1.ReasonHostInUse))

		By("giving it the host")
		eventuallySucceeds(ctx, func() { change(ctx, holder, func(s *spec) { s.BaseURL = "https://elsewhere.smoke.example.com" }) })
		eventuallySucceeds(ctx, func() { Expect(ingressHost(ctx, waiting)).To(Equal(host)) })
		eventuallySucceeds(ctx, func() { makeReady(ctx, waiting) })
		eventuallySucceeds(ctx, func() { makeReady(ctx, holder) })
		stop()

		By("giving it the turn for new pods, after another operator has begun")
		o.Render.Image = "ghcr.io/phoneproof/phoneproof:2.0.0"
		startManager(ctx, operator, o)
		all := []*verifyv1.VerificationProject{holder, waiting}
		rolled := func() (out []*appsv1.Deployment) {
			for _, project := range all {
				if d := deployment(ctx, project); d.Spec.Template.Spec.Containers[0].Image == o.Render.Image {
					out = append(out, d)
				}
			}
			return out
		}
		eventuallySucceeds(ctx, func() {
			Expect(rolled()).To(HaveLen(1))
			for _, project := range all {
				if imageOf(ctx, project) != o.Render.Image {
					expectCondition(ctx, project, verifyv1.ConditionReconciling, metav1.ConditionTrue, verifyv1.ReasonRolloutQueued)
				}
			}
		})
		eventuallySucceeds(ctx, func() { Expect(playRollout(ctx, rolled()[0], allReady)).To(Succeed()) })
		eventuallySucceeds(ctx, func() { Expect(rolled()).To(HaveLen(2)) })
	})

	It("follows the Gateway API, which may come after the operator, and go again", func(ctx SpecContext) {
		startManager(ctx, operator, usual())
		project := newProject(newNamespace(ctx), "shop")
		project.Spec.Expose.HTTPRoute = &verifyv1.HTTPRouteSettings{ParentRefs: []verifyv1.GatewayRef{{Name: "public"}}}
		create(ctx, project)
		eventuallySucceeds(ctx, func() { setRollout(ctx, project, allReady) })
		report(ctx, project)
		missing := func() {
			expectCondition(ctx, project, verifyv1.ConditionReady, metav1.ConditionFalse, verifyv1.ReasonGatewayAPIMissing)
			expectCondition(ctx, project, verifyv1.ConditionAvailable, metav1.ConditionTrue, verifyv1.ReasonPodsAvailable)
			Expect(find(ctx, project, verifyv1.ConditionStalled)).To(BeZero())
		}
		eventuallySucceeds(ctx, missing)

		By("coming")
		crd := installGatewayAPI(ctx)
		eventuallySucceeds(ctx, func() { expectReady(ctx, project) })
		found := route(ctx, project)
		Expect(metav1.IsControlledBy(found, project)).To(BeTrue())

		By("being watched")
		Expect(admin.Delete(ctx, found)).To(Succeed())
		eventuallySucceeds(ctx, func() { Expect(route(ctx, project).GetUID()).NotTo(Or(BeEmpty(), Equal(found.GetUID()))) })
		Expect(admin.Patch(ctx, route(ctx, project), client.RawPatch(types.MergePatchType,
			[]byte(`{"spec": {"parentRefs": [{"name": "another"}]}}`)))).To(Succeed())
		eventuallySucceeds(ctx, func() {
			parents, _, _ := unstructured.NestedSlice(route(ctx, project).Object, "spec", "parentRefs")
			Expect(parents).To(ConsistOf(HaveKeyWithValue("name", "public")))
		})

		By("going")
		removeGatewayAPI(ctx, crd)
		eventuallySucceeds(ctx, missing)

		By("coming back")
		installGatewayAPI(ctx)
		eventuallySucceeds(ctx, func() { expectReady(ctx, project) })
		eventuallySucceeds(ctx, func() { Expect(route(ctx, project).GetUID()).NotTo(BeEmpty()) })
		eventuallySucceeds(ctx, func() { change(ctx, project, func(s *spec) { s.Expose.HTTPRoute = nil }) })
		eventuallySucceeds(ctx, func() { Expect(route(ctx, project).GetUID()).To(BeEmpty()) })
	})

	It("works with Roles in some namespaces, and knows nothing of others", func(ctx SpecContext) {
		const name = "phoneproof-namespaced"
		Expect(admin.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: name}})).To(Succeed())
		watched, other := []string{newNamespace(ctx), newNamespace(ctx)}, newNamespace(ctx)
		for _, namespace := range watched {
			bindRole(ctx, namespace, name)
			for _, file := range []string{"server_kubernetes_role.yaml", "server_postgresql_role.yaml"} {
				role := manifest(roles + file)
				role.SetKind("Role")
				role.SetNamespace(namespace)
				Expect(admin.Create(ctx, role)).To(Succeed())
			}
		}
		o := usual()
		o.Render.NamespacedRoles = true
		startManager(ctx, asAccount(ctx, operatorNamespace, name), o, watched...)
		ignored := create(ctx, newProject(other, "shop"))
		for _, namespace := range watched {
			project := create(ctx, newProject(namespace, "shop"))
			eventuallySucceeds(ctx, func() { makeReady(ctx, project) })
			var bindings rbacv1.RoleBindingList
			Expect(admin.List(ctx, &bindings, client.InNamespace(namespace), client.HasLabels{verifyv1.ProjectLabel})).To(Succeed())
			Expect(bindings.Items).To(HaveLen(1))
			Expect(bindings.Items[0].RoleRef).To(Equal(rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "phoneproof-server-kubernetes"}))
			eventuallySucceeds(ctx, func() { change(ctx, project, func(s *spec) { s.Server.PriorityClassName = "high" }) })
			eventuallySucceeds(ctx, func() {
				expectCondition(ctx, project, verifyv1.ConditionReady, metav1.ConditionFalse, verifyv1.ReasonNotPermitted)
				expectEvent(ctx, project, corev1.EventTypeWarning, verifyv1.ReasonNotPermitted)
			})
		}
		Expect(children(ctx, ignored)).To(BeEmpty())
		Expect(current(ctx, ignored).Status.Conditions).To(BeEmpty())
	})
})
