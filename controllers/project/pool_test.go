package project

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/apply"
	"github.com/phoneproof/phoneproof/controllers/project/render"
)

var _ = Describe("A pool", func() {
	It("has one Deployment for its projects, which none controls and all own", func(ctx SpecContext) {
		startSteppedOperator(ctx, operator, usual())
		namespace := newNamespace(ctx)
		books, bikes, alone := create(ctx, newPooledProject(namespace, "books")), create(ctx, newPooledProject(namespace, "bikes")), create(ctx, newProject(namespace, "alone"))
		expectCondition(ctx, books, verifyv1.ConditionReady, metav1.ConditionFalse, verifyv1.ReasonProgressing)
		for _, p := range []*verifyv1.VerificationProject{books, bikes} {
			Expect(children(ctx, p)).To(ConsistOf("Service phoneproof-" + p.Name))
		}
		Expect(children(ctx, alone)).To(ContainElement("Deployment phoneproof-alone"))
		Expect(poolChildren(ctx, namespace)).To(Equal(map[string][]string{
			"Deployment phoneproofpool-small": {"bikes", "books"}, "ServiceAccount phoneproofpool-small": {"bikes", "books"},
			"RoleBinding phoneproofpool-small-kubernetes": {"bikes", "books"},
		}))
		Expect(targetOf(ctx, books)).To(Equal(portOf(ctx, books)))
		Expect(targetOf(ctx, bikes)).To(Equal(portOf(ctx, bikes)))
		Expect(portOf(ctx, books)).NotTo(Equal(portOf(ctx, bikes)))

		makePoolReady(ctx, books, bikes)

		By("taking in one more, and leaving the ports of the others as they are")
		before := map[string]int32{"books": portOf(ctx, books), "bikes": portOf(ctx, bikes)}
		another := create(ctx, newPooledProject(namespace, "another"))
		expectCondition(ctx, another, verifyv1.ConditionAvailable, metav1.ConditionFalse, verifyv1.ReasonPodsUnavailable)
		Expect(map[string]int32{"books": portOf(ctx, books), "bikes": portOf(ctx, bikes)}).To(Equal(before))
		report(ctx, another)
		setPoolRollout(ctx, namespace, oldReady)
		expectCondition(ctx, another, verifyv1.ConditionAvailable, metav1.ConditionFalse, verifyv1.ReasonPodsUnavailable)
		expectCondition(ctx, books, verifyv1.ConditionAvailable, metav1.ConditionTrue, verifyv1.ReasonPodsAvailable)
		setPoolRollout(ctx, namespace, allReady)
		makePoolReady(ctx, books, bikes, another)

		By("writing nothing at rest")
		op := operators[0]
		writes := len(op.written(namespace))
		elapse(ctx, 4*afterRejection)
		Expect(op.written(namespace)).To(HaveLen(writes))
	})

	It("does not give the port of a project that left to the next one", func(ctx SpecContext) {
		startSteppedOperator(ctx, operator, usual())
		namespace := newNamespace(ctx)
		books, bikes := create(ctx, newPooledProject(namespace, "books")), create(ctx, newPooledProject(namespace, "bikes"))
		makePoolReady(ctx, books, bikes)
		left := portOf(ctx, books)
		Expect(admin.Delete(ctx, books)).To(Succeed())
		settle(ctx)
		Expect(render.MemberPorts(poolDeployment(ctx, namespace))).To(HaveLen(1))
		next := create(ctx, newPooledProject(namespace, "next"))
		makePoolReady(ctx, bikes, next)
		Expect(portOf(ctx, next)).NotTo(Equal(left))
		Expect(poolChildren(ctx, namespace)["Deployment phoneproofpool-small"]).To(Equal([]string{"bikes", "next"}))
	})

	It("stalls a later project that wants other pods, by name, and takes it in when it does not", func(ctx SpecContext) {
		startSteppedOperator(ctx, operator, usual())
		namespace := newNamespace(ctx)
		books := create(ctx, newPooledProject(namespace, "books"))
		makePoolReady(ctx, books)
		toys := newPooledProject(namespace, "toys")
		toys.Spec.Server.Replicas = new(int32(7))
		create(ctx, toys)
		stalled := expectCondition(ctx, toys, verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonPoolConflict)
		Expect(stalled.Message).To(ContainSubstring("the project books"))
		expectCondition(ctx, toys, verifyv1.ConditionReady, metav1.ConditionFalse, verifyv1.ReasonPoolConflict)
		expectCondition(ctx, toys, verifyv1.ConditionAvailable, metav1.ConditionFalse, verifyv1.ReasonPodsUnavailable)
		expectReady(ctx, books)
		Expect(targetOf(ctx, toys)).To(BeEquivalentTo(8080), "no pod of the pool listens there")
		Expect(*poolDeployment(ctx, namespace).Spec.Replicas).To(BeEquivalentTo(2))

		change(ctx, toys, func(s *spec) { s.Server.Replicas = nil })
		makePoolReady(ctx, books, toys)

		By("following the oldest, and stalling the others until they do too")
		change(ctx, books, func(s *spec) { s.Server.Replicas = new(int32(3)) })
		expectCondition(ctx, toys, verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonPoolConflict)
		expectCondition(ctx, toys, verifyv1.ConditionAvailable, metav1.ConditionTrue, verifyv1.ReasonPodsAvailable)
		Expect(*poolDeployment(ctx, namespace).Spec.Replicas).To(BeEquivalentTo(3))
		Expect(targetOf(ctx, toys)).To(Equal(portOf(ctx, toys)), "it is served as before")
		change(ctx, toys, func(s *spec) { s.Server.Replicas = new(int32(3)) })
		makePoolReady(ctx, books, toys)
	})

	It("goes on while a project is suspended, without new pods", func(ctx SpecContext) {
		startSteppedOperator(ctx, operator, usual())
		namespace := newNamespace(ctx)
		books, bikes := create(ctx, newPooledProject(namespace, "books")), create(ctx, newPooledProject(namespace, "bikes"))
		makePoolReady(ctx, books, bikes)
		before := poolDeployment(ctx, namespace)
		change(ctx, books, func(s *spec) { s.Suspend = new(true) })
		expectCondition(ctx, books, verifyv1.ConditionReady, metav1.ConditionFalse, verifyv1.ReasonSuspended)
		expectCondition(ctx, books, verifyv1.ConditionAvailable, metav1.ConditionFalse, verifyv1.ReasonSuspended)
		expectReady(ctx, bikes)
		Expect(poolDeployment(ctx, namespace).Generation).To(Equal(before.Generation), "the others are neither scaled nor started anew")
		Expect(targetOf(ctx, books)).To(BeEquivalentTo(8080))

		change(ctx, books, func(s *spec) { s.Suspend = nil })
		makePoolReady(ctx, books, bikes)
		Expect(poolDeployment(ctx, namespace).Generation).To(Equal(before.Generation))
		Expect(targetOf(ctx, books)).To(Equal(portOf(ctx, books)))

		By("running no pods when all are suspended, and keeping what they will need")
		for _, p := range []*verifyv1.VerificationProject{books, bikes} {
			change(ctx, p, func(s *spec) { s.Suspend = new(true) })
		}
		Expect(*poolDeployment(ctx, namespace).Spec.Replicas).To(BeZero())
		Expect(poolChildren(ctx, namespace)).To(HaveLen(3))
		setPoolRollout(ctx, namespace, allReady)
		port := portOf(ctx, bikes)
		change(ctx, bikes, func(s *spec) { s.Suspend = nil })
		Expect(find(ctx, bikes, verifyv1.ConditionAvailable).Status).To(Equal(metav1.ConditionFalse))
		makePoolReady(ctx, bikes)
		Expect(portOf(ctx, bikes)).To(Equal(port))
		Expect(*poolDeployment(ctx, namespace).Spec.Replicas).To(BeEquivalentTo(2))
	})

	It("does not change when the project that decides on its pods is suspended", func(ctx SpecContext) {
		startSteppedOperator(ctx, operator, usual())
		namespace := newNamespace(ctx)
		books, toys := create(ctx, newPooledProject(namespace, "books")), create(ctx, newPooledProject(namespace, "toys"))
		makePoolReady(ctx, books, toys)
		change(ctx, books, func(s *spec) { s.Server.Replicas = new(int32(5)) })
		before := poolDeployment(ctx, namespace)
		Expect(*before.Spec.Replicas).To(BeEquivalentTo(5))
		change(ctx, books, func(s *spec) { s.Suspend = new(true) })
		Expect(poolDeployment(ctx, namespace).Generation).To(Equal(before.Generation))
	})

	It("gives no project the port that a Service of another one leads to, even after its Deployment was deleted", func(ctx SpecContext) {
		startSteppedOperator(ctx, operator, usual())
		namespace := newNamespace(ctx)
		books, bikes := create(ctx, newPooledProject(namespace, "books")), create(ctx, newPooledProject(namespace, "bikes"))
		makePoolReady(ctx, books, bikes)
		change(ctx, bikes, func(s *spec) { s.Server.PriorityClassName = "high" }) // refused: its Service stays as it is
		ports := map[string]int32{"books": portOf(ctx, books), "bikes": portOf(ctx, bikes)}
		Expect(admin.Delete(ctx, poolDeployment(ctx, namespace))).To(Succeed())
		another := create(ctx, newPooledProject(namespace, "another"))
		makePoolReady(ctx, books, another)
		Expect(portOf(ctx, books)).To(Equal(ports["books"]))
		Expect(portOf(ctx, another)).NotTo(Equal(ports["bikes"]))
		Expect(targetOf(ctx, bikes)).To(Equal(ports["bikes"]), "it leads to nothing now")
	})

	It("recovers its objects that lost their label", func(ctx SpecContext) {
		op := startSteppedOperator(ctx, operator, usual())
		namespace := newNamespace(ctx)
		books := create(ctx, newPooledProject(namespace, "books"))
		makePoolReady(ctx, books)
		port, services := portOf(ctx, books), op.written(namespace, "services")
		for _, object := range []client.Object{&appsv1.Deployment{}, &corev1.ServiceAccount{}} {
			for _, label := range []string{verifyv1.ProjectLabel, verifyv1.PoolLabel} {
				object.SetNamespace(namespace)
				object.SetName("phoneproofpool-small")
				without := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata": {"labels": {%q: null}}}`, label))
				Expect(admin.Patch(ctx, object, without)).To(Succeed())
				settle(ctx)
				Expect(admin.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
				Expect(object.GetLabels()).To(And(HaveKeyWithValue(verifyv1.ProjectLabel, ""), HaveKeyWithValue(verifyv1.PoolLabel, "small")))
			}
		}
		makePoolReady(ctx, books)
		Expect(portOf(ctx, books)).To(Equal(port))
		Expect(op.written(namespace, "services")).To(Equal(services), "it leads there meanwhile")
	})

	It("replaces arguments that others wrote into its Deployment, however many", func(ctx SpecContext) {
		startSteppedOperator(ctx, operator, usual())
		namespace := newNamespace(ctx)
		books := create(ctx, newPooledProject(namespace, "books"))
		makePoolReady(ctx, books)
		forged := poolDeployment(ctx, namespace)
		for i := range 1000 {
			forged.Spec.Template.Spec.Containers[0].Args = append(forged.Spec.Template.Spec.Containers[0].Args, fmt.Sprintf("--member=name=x%d,address=:%d", i, 9000+i))
		}
		Expect(admin.Update(ctx, forged)).To(Succeed())
		makePoolReady(ctx, books)
		Expect(render.MemberPorts(poolDeployment(ctx, namespace))).To(HaveLen(1))
	})

	It("leaves a worker free while another one reconciles it", func(ctx SpecContext) {
		op := startSteppedOperator(ctx, operator, usual())
		namespace := newNamespace(ctx)
		books := create(ctx, newPooledProject(namespace, "books"))
		op.busyPools.Store(client.ObjectKey{Namespace: namespace, Name: "small"}, true)
		Expect(op.Reconcile(ctx, books)).To(HaveField("RequeueAfter", BeNumerically(">=", settling)))
		op.busyPools.Clear()
		makePoolReady(ctx, books)
	})

	It("is left by a project that is being deleted, even if a finalizer keeps that", func(ctx SpecContext) {
		startSteppedOperator(ctx, operator, usual())
		namespace := newNamespace(ctx)
		books := newPooledProject(namespace, "books")
		books.Finalizers = []string{"example.com/keep"}
		create(ctx, books)
		bikes := create(ctx, newPooledProject(namespace, "bikes"))
		makePoolReady(ctx, books, bikes)
		Expect(admin.Delete(ctx, books)).To(Succeed())
		settle(ctx)
		Expect(render.MemberPorts(poolDeployment(ctx, namespace))).To(And(HaveLen(1), HaveKey("bikes")))
		Expect(poolChildren(ctx, namespace)["Deployment phoneproofpool-small"]).To(Equal([]string{"bikes"}))
		Expect(admin.Delete(ctx, bikes)).To(Succeed())
		// No garbage collector runs here; the operator's part is that nothing is created again.
		for _, kind := range apply.Objects(false) {
			Expect(admin.DeleteAllOf(ctx, kind, client.InNamespace(namespace), client.MatchingLabels{verifyv1.PoolLabel: "small"})).To(Succeed())
		}
		elapse(ctx, lastRetry)
		Expect(poolChildren(ctx, namespace)).To(BeEmpty())

		By("keeping the port that its Service leads to from the next project")
		next := create(ctx, newPooledProject(namespace, "next"))
		Expect(portOf(ctx, next)).NotTo(Equal(targetOf(ctx, books)))
	})

	It("is not hurt by a project whose spec is refused", func(ctx SpecContext) {
		startSteppedOperator(ctx, operator, usual())
		namespace := newNamespace(ctx)
		books, bikes := create(ctx, newPooledProject(namespace, "books")), create(ctx, newPooledProject(namespace, "bikes"))
		makePoolReady(ctx, books, bikes)
		change(ctx, books, func(s *spec) { s.Server.PriorityClassName = "high" })
		expectCondition(ctx, books, verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonNotPermitted)
		expectCondition(ctx, books, verifyv1.ConditionAvailable, metav1.ConditionTrue, verifyv1.ReasonPodsAvailable)
		Expect(poolDeployment(ctx, namespace).Spec.Template.Spec.PriorityClassName).To(BeEmpty())
		change(ctx, bikes, func(s *spec) { s.APIKeys[0].SecretRef.Key = "another" })
		makePoolReady(ctx, bikes)
		Expect(poolDeployment(ctx, namespace).Spec.Template.Spec.Containers[0].Args).To(
			ContainElement(And(HavePrefix("--mounted-secrets="), ContainSubstring("shop/another"))))
	})

	It("stops serving a project whose account is granted to another namespace, and leaves the others", func(ctx SpecContext) {
		first := startSteppedOperator(ctx, operator, usual())
		namespace := newNamespace(ctx)
		books, bikes := create(ctx, newPooledProject(namespace, "books")), create(ctx, newPooledProject(namespace, "bikes"))
		makePoolReady(ctx, books, bikes)
		first.stop()
		o := usual()
		o.Permissions.AccountGrants = []Grant{{"elsewhere", "telegram:" + strings.ToLower(books.Spec.Telegram.BotUsername)}}
		startSteppedOperator(ctx, operator, o)
		expectCondition(ctx, books, verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonNotPermitted)
		expectCondition(ctx, books, verifyv1.ConditionAvailable, metav1.ConditionFalse, verifyv1.ReasonPodsUnavailable)
		Expect(render.MemberPorts(poolDeployment(ctx, namespace))).To(And(HaveLen(1), HaveKey("bikes")))
		makePoolReady(ctx, bikes)
	})

	It("leaves an object of its name that is not its own, and serves once that is gone", func(ctx SpecContext) {
		startSteppedOperator(ctx, operator, usual())
		namespace := newNamespace(ctx)
		foreign := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "phoneproofpool-small",
			Labels: map[string]string{verifyv1.PoolLabel: "small", verifyv1.ProjectLabel: ""},
		}}
		Expect(admin.Create(ctx, foreign)).To(Succeed())
		books := create(ctx, newPooledProject(namespace, "books"))
		Expect(expectCondition(ctx, books, verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonConflict).Message).
			To(ContainSubstring("ServiceAccount phoneproofpool-small"))
		Expect(poolChildren(ctx, namespace)).To(BeEmpty())
		Expect(targetOf(ctx, books)).To(BeEquivalentTo(8080))
		Expect(admin.Delete(ctx, foreign)).To(Succeed())
		elapse(ctx, afterConflict)
		makePoolReady(ctx, books)
	})

	It("corrects what others change in it, and not for ever at once", func(ctx SpecContext) {
		op := startSteppedOperator(ctx, operator, usual())
		namespace := newNamespace(ctx)
		books, bikes := create(ctx, newPooledProject(namespace, "books")), create(ctx, newPooledProject(namespace, "bikes"))
		makePoolReady(ctx, books, bikes)
		for range 3 * correctionBurst {
			Expect(admin.Patch(ctx, poolDeployment(ctx, namespace), client.RawPatch(types.MergePatchType, []byte(`{"spec": {"replicas": 9}}`)))).To(Succeed())
			settle(ctx)
		}
		Expect(len(accepted(op.written(namespace, "deployments/phoneproofpool-small")))).To(BeNumerically("<=", correctionBurst+4))
		elapse(ctx, 2*correctionInterval)
		Expect(*poolDeployment(ctx, namespace).Spec.Replicas).To(BeEquivalentTo(2))
	})

	It("is not written by a view of it that is no longer true", func(ctx SpecContext) {
		op := startSteppedOperator(ctx, operator, usual())
		namespace := newNamespace(ctx)
		books, bikes := create(ctx, newPooledProject(namespace, "books")), create(ctx, newPooledProject(namespace, "bikes"))
		makePoolReady(ctx, books, bikes)
		owner, err := op.poolOwner(ctx, namespace, "small")
		Expect(err).NotTo(HaveOccurred())
		seen, err := op.applier.Observe(ctx, owner)
		Expect(err).NotTo(HaveOccurred())
		before := poolDeployment(ctx, namespace)
		Expect(admin.Patch(ctx, before.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"labels": {"a": "b"}}}`)))).To(Succeed())
		pool := newPool("small", poolDecision{members: []*verifyv1.VerificationProject{current(ctx, bikes)}}, seen.Deployment(), map[string]int32{})
		_, err = op.applier.Apply(ctx, apply.Request{Owner: owner, Observed: seen, Wanted: render.PoolChildren(pool, op.Render)})
		Expect(err).To(MatchError(ContainSubstring("the object has been modified")))
		Expect(poolDeployment(ctx, namespace).Spec).To(Equal(before.Spec))
	})

	It("gets a new version by turns, as projects with pods of their own do", func(ctx SpecContext) {
		first := startSteppedOperator(ctx, operator, usual())
		namespace := newNamespace(ctx)
		books, bikes := create(ctx, newPooledProject(namespace, "books")), create(ctx, newPooledProject(namespace, "bikes"))
		alone := create(ctx, newProject(namespace, "alone"))
		makePoolReady(ctx, books, bikes)
		makeReady(ctx, alone)
		first.stop()
		o := usual()
		o.Render.Image, o.MaxUnreadyRollouts = "ghcr.io/phoneproof/phoneproof:2.0.0", 1
		startSteppedOperator(ctx, operator, o)
		settle(ctx)
		images := func() []string {
			return []string{imageOf(ctx, alone), poolDeployment(ctx, namespace).Spec.Template.Spec.Containers[0].Image}
		}
		Expect(images()).To(ConsistOf("ghcr.io/phoneproof/phoneproof:1.0.0", o.Render.Image), "one at a time")
		finishRollouts(ctx, namespace)
		elapse(ctx, passPeriod)
		finishRollouts(ctx, namespace)
		Expect(images()).To(HaveEach(o.Render.Image))
		elapse(ctx, passPeriod)
		for _, p := range []*verifyv1.VerificationProject{books, bikes, alone} {
			expectReady(ctx, p)
		}
	})
})

// newPooledProject returns the smallest useful project of the pool small.
func newPooledProject(namespace, name string) *verifyv1.VerificationProject {
	project := newProject(namespace, name)
	project.Spec.Server.Pool = "small"
	return project
}

// poolDeployment returns the Deployment of the pool small, which must exist.
func poolDeployment(ctx context.Context, namespace string) *appsv1.Deployment {
	GinkgoHelper()
	settle(ctx)
	d := &appsv1.Deployment{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "phoneproofpool-small"}, d)).To(Succeed())
	return d
}

// setPoolRollout is setRollout for the pool small.
func setPoolRollout(ctx context.Context, namespace, state string) {
	GinkgoHelper()
	Expect(playRollout(ctx, poolDeployment(ctx, namespace), state)).To(Succeed())
}

// makePoolReady is makeReady for projects of the pool small.
func makePoolReady(ctx context.Context, projects ...*verifyv1.VerificationProject) {
	GinkgoHelper()
	settle(ctx)
	for _, p := range projects {
		report(ctx, p)
	}
	finishRollouts(ctx, projects[0].Namespace)
	for _, p := range projects {
		expectReady(ctx, p)
	}
}

// poolChildren returns the names of the owners of each object that projects own and none controls, by KIND NAME.
func poolChildren(ctx context.Context, namespace string) map[string][]string {
	GinkgoHelper()
	settle(ctx)
	out := map[string][]string{}
	for _, object := range objectsOf(ctx, namespace) {
		owners := apply.PoolOwners(object)
		if len(owners) == 0 {
			continue
		}
		Expect(metav1.GetControllerOf(object)).To(BeNil())
		gvk, err := admin.GroupVersionKindFor(object)
		Expect(err).NotTo(HaveOccurred())
		var names []string
		for _, owner := range owners {
			names = append(names, owner.Name)
		}
		slices.Sort(names)
		out[gvk.Kind+" "+object.GetName()] = names
	}
	return out
}

// portOf returns the port of a project in the pods of its pool.
func portOf(ctx context.Context, project *verifyv1.VerificationProject) int32 {
	GinkgoHelper()
	return render.MemberPorts(poolDeployment(ctx, project.Namespace))[project.Name]
}

// targetOf returns the port that a project's Service leads to.
func targetOf(ctx context.Context, project *verifyv1.VerificationProject) int32 {
	GinkgoHelper()
	settle(ctx)
	var service corev1.Service
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: project.Namespace, Name: render.Name(project.Name)}, &service)).To(Succeed())
	return service.Spec.Ports[0].TargetPort.IntVal
}
