package project

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

var _ = Describe("A pod template with repeated foreign changes", func() {
	It("is corrected a few times at once and then once a minute, because each correction replaces the pods", func(ctx SpecContext) {
		op := startSteppedOperator(ctx, operator, usual())
		project := create(ctx, newProject(newNamespace(ctx), "shop"))
		makeReady(ctx, project)
		writes := len(accepted(op.written(project.Namespace, "deployments")))
		corrections := func() int { return len(accepted(op.written(project.Namespace, "deployments"))) - writes }
		overwrite := func() {
			patch := client.RawPatch(types.StrategicMergePatchType,
				[]byte(`{"spec": {"template": {"spec": {"containers": [{"name": "server", "image": "another"}]}}}}`))
			Expect(admin.Patch(ctx, deployment(ctx, project), patch)).To(Succeed())
		}
		for range correctionBurst {
			overwrite()
			Expect(imageOf(ctx, project)).To(Equal(usual().Render.Image))
		}
		overwrite()
		elapse(ctx, correctionInterval/2)
		Expect(imageOf(ctx, project)).To(Equal("another"))
		elapse(ctx, correctionInterval/2)
		Expect(imageOf(ctx, project)).To(Equal(usual().Render.Image))
		Expect(corrections()).To(Equal(correctionBurst + 1))
	})
})

var _ = Describe("A status with repeated foreign changes", func() {
	It("is corrected a few times at once and then once a minute, even if its generation is wrong", func(ctx SpecContext) {
		op := startSteppedOperator(ctx, operator, usual())
		project := create(ctx, newProject(newNamespace(ctx), "shop"))
		makeReady(ctx, project)
		written := func() int { return len(op.written(project.Namespace, "verificationprojects", "/status 200")) }
		before := written()
		const wrong = 99
		overwrite := func() {
			now := current(ctx, project)
			now.Status.ObservedGeneration = wrong
			meta.FindStatusCondition(now.Status.Conditions, verifyv1.ConditionReady).Message = "all is lost"
			Expect(admin.Status().Update(ctx, now)).To(Succeed())
			settle(ctx)
		}
		observed := func() int64 { return current(ctx, project).Status.ObservedGeneration }
		for range correctionBurst {
			overwrite()
			Expect(observed()).To(Equal(project.Generation))
			Expect(find(ctx, project, verifyv1.ConditionReady).Message).NotTo(Equal("all is lost"))
		}
		overwrite()
		elapse(ctx, correctionInterval/2)
		Expect(observed()).To(BeEquivalentTo(wrong))
		elapse(ctx, correctionInterval/2)
		Expect(observed()).To(Equal(project.Generation))
		Expect(written() - before).To(Equal(correctionBurst + 1))

		By("applying a change of the project at once")
		overwrite()
		Expect(observed()).To(BeEquivalentTo(wrong))
		change(ctx, project, func(s *spec) { s.DisplayName = "Shop" })
		report(ctx, project)
		expectReady(ctx, project)
	})
})

var _ = Describe("Suspending", func() {
	It("stops the pods even if the API server refuses the Deployment", func(ctx SpecContext) {
		startSteppedOperator(ctx, operator, usual())
		project := create(ctx, newProject(newNamespace(ctx), "shop"))
		makeReady(ctx, project)
		change(ctx, project, func(s *spec) { s.Server.Tolerations = []corev1.Toleration{{Key: "a key", Operator: "Exists"}} })
		expectCondition(ctx, project, verifyv1.ConditionStalled, "True", verifyv1.ReasonChildRejected)
		expectCondition(ctx, project, verifyv1.ConditionAvailable, "True", verifyv1.ReasonPodsAvailable)

		change(ctx, project, func(s *spec) { s.Suspend = new(true) })
		Expect(children(ctx, project)).NotTo(ContainElement(HavePrefix("Deployment")))
		expectCondition(ctx, project, verifyv1.ConditionAvailable, "False", verifyv1.ReasonSuspended)
		expectCondition(ctx, project, verifyv1.ConditionReady, "False", verifyv1.ReasonSuspended)
		expectCondition(ctx, project, verifyv1.ConditionStalled, "True", verifyv1.ReasonChildRejected)

		change(ctx, project, func(s *spec) { s.Suspend, s.Server.Tolerations = nil, nil })
		makeReady(ctx, project)
	})
})

var _ = Describe("A change of a child's status alone", func() {
	It("does not requeue its project, because an autoscaler's changes several times a minute", func(ctx SpecContext) {
		autoscaler := &autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Namespace: newNamespace(ctx), Name: "shop"},
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "shop"},
				MaxReplicas:    5,
			},
		}
		Expect(admin.Create(ctx, autoscaler)).To(Succeed())
		before := autoscaler.DeepCopy()
		autoscaler.Status.CurrentReplicas, autoscaler.Status.DesiredReplicas = 2, 3
		Expect(admin.Status().Update(ctx, autoscaler)).To(Succeed())
		Expect(autoscaler.ResourceVersion).NotTo(Equal(before.ResourceVersion))
		Expect(withoutStatus().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: autoscaler})).To(BeFalse())

		before = autoscaler.DeepCopy()
		autoscaler.Spec.MaxReplicas = 6
		Expect(admin.Update(ctx, autoscaler)).To(Succeed())
		Expect(withoutStatus().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: autoscaler})).To(BeTrue())
	})
})

var _ = Describe("A paused Deployment", func() {
	DescribeTable("has no turn, and is in progress only if new pods are due",
		func(generation int64, updated int32, want rollout) {
			d := pods(rolling, 2)
			d.Spec.Paused, d.Generation = true, generation
			d.Status.Replicas, d.Status.UpdatedReplicas = 2, updated
			Expect(rolloutOf(d)).To(Equal(want))
			Expect(isUnderway(d)).To(BeFalse())
		},
		Entry("at rest", int64(2), int32(2), rolledOut),
		Entry("with new pods due", int64(2), int32(0), paused),
		Entry("in the middle of a rollout", int64(2), int32(1), paused),
		Entry("and changed just now", int64(3), int32(2), paused),
	)

	It("is reported with the command that resumes it", func(ctx SpecContext) {
		startSteppedOperator(ctx, operator, usual())
		project := create(ctx, newProject(newNamespace(ctx), "shop"))
		makeReady(ctx, project)
		kubectl(ctx, "rollout", "pause", "--namespace", project.Namespace, "deployment/phoneproof-shop")
		change(ctx, project, func(s *spec) { s.Server.NodeSelector = map[string]verifyv1.LabelValue{"pool": "web"} })
		Expect(find(ctx, project, verifyv1.ConditionReady).Message).To(ContainSubstring("kubectl rollout resume"))
		kubectl(ctx, "rollout", "resume", "--namespace", project.Namespace, "deployment/phoneproof-shop")
		makeReady(ctx, project)
	})
})

var _ = Describe("Deployments that belong to no project", func() {
	It("take no turns", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		o := usual()
		o.MaxUnreadyRollouts = 1
		first := startSteppedOperator(ctx, operator, o, namespace)
		project := create(ctx, newProject(namespace, "shop"))
		makeReady(ctx, project)
		first.stop()
		foreign := someDeployment(namespace, "never-ready")
		foreign.Labels = map[string]string{verifyv1.ProjectLabel: "shop"}
		Expect(admin.Create(ctx, foreign)).To(Succeed())

		o.Render.Image = "ghcr.io/phoneproof/phoneproof:2.0.0"
		startSteppedOperator(ctx, operator, o, namespace)
		Expect(imageOf(ctx, project)).To(Equal(o.Render.Image))
	})
})
