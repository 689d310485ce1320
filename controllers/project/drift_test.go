package project

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

var _ = Describe("A foreign change of the children", func() {
	image := func(ctx context.Context, project *verifyv1.VerificationProject) func() string {
		return func() string { return deployment(ctx, project).Spec.Template.Spec.Containers[0].Image }
	}
	patch := func(ctx context.Context, object client.Object, merge string) {
		GinkgoHelper()
		Expect(admin.Patch(ctx, object, client.RawPatch(types.StrategicMergePatchType, []byte(merge)))).To(Succeed())
	}

	It("is corrected once, during any other rollout", func(ctx SpecContext) {
		o := usual()
		o.MaxUnreadyRollouts = 1
		op := operate(ctx, operator, o)
		deployment(ctx, create(ctx, newProject(newNamespace(ctx), "unready")))
		project := create(ctx, newProject(newNamespace(ctx), "shop"))
		makeReady(ctx, project)
		before := deployment(ctx, project)
		writes := len(accepted(op.written(project.Namespace, "deployments")))

		patch(ctx, deployment(ctx, project), `{"spec": {"replicas": 0, "template": {"spec": {"containers": [{"name": "server", "image": "evil"}]}}}}`)
		Eventually(image(ctx, project)).WithContext(ctx).Should(Equal(usual().Render.Image))
		makeReady(ctx, project)
		after := deployment(ctx, project)
		Expect(after.Spec).To(Equal(before.Spec))
		Expect(after.Generation-before.Generation).To(BeEquivalentTo(2), "the change, and its undoing")
		// A reconciliation with a slightly stale cache may repeat the write, which changes nothing.
		Expect(len(accepted(op.written(project.Namespace, "deployments"))) - writes).To(And(
			BeNumerically(">=", 1), BeNumerically("<=", correctionBurst)))

		By("leaving alone what it does not own")
		patch(ctx, deployment(ctx, project), `{"metadata": {"annotations": {"example.com/team": "blue"}}}`)
		Consistently(func() string { return deployment(ctx, project).Annotations["example.com/team"] }).WithContext(ctx).
			WithTimeout(3 * settling).Should(Equal("blue"))
	})

	It("is corrected after a deletion", func(ctx SpecContext) {
		operate(ctx, operator, usual())
		project := create(ctx, newProject(newNamespace(ctx), "shop"))
		makeReady(ctx, project)
		for _, name := range children(ctx, project) {
			Expect(kubectl(ctx, "delete", "--namespace", project.Namespace, kindOf(name), nameOf(name))).To(ContainSubstring("deleted"))
		}
		Eventually(children).WithContext(ctx).WithArguments(ctx, project).Should(HaveLen(4))
		makeReady(ctx, project)
	})

	It("is corrected with a growing delay if it is repeated", func(ctx SpecContext) {
		op := operate(ctx, operator, usual())
		project := create(ctx, newProject(newNamespace(ctx), "shop"))
		makeReady(ctx, project)
		writes := len(accepted(op.written(project.Namespace, "services")))
		corrections := func() int { return len(accepted(op.written(project.Namespace, "services"))) - writes }
		service := func() *corev1.Service {
			s := &corev1.Service{}
			Expect(admin.Get(ctx, client.ObjectKey{Namespace: project.Namespace, Name: "phoneproof-shop"}, s)).To(Succeed())
			return s
		}
		start := time.Now()
		label := func() string { return service().Labels["app.kubernetes.io/managed-by"] }
		for range correctionBurst {
			patch(ctx, service(), `{"metadata": {"labels": {"app.kubernetes.io/managed-by": "another"}}}`)
			Eventually(label).WithContext(ctx).WithTimeout(2 * correctionInterval).Should(Equal("phoneproof-operator"))
		}
		patch(ctx, service(), `{"metadata": {"labels": {"app.kubernetes.io/managed-by": "another"}}}`)
		// A reconciliation with a slightly stale cache corrects once more, and uses the same budget.
		Consistently(func() bool {
			return corrections() <= correctionBurst+int(time.Since(start)/correctionInterval)
		}).WithContext(ctx).WithTimeout(10 * settling).Should(BeTrue())

		By("carrying out a change of the project at once")
		change(ctx, project, func(s *spec) { s.Server.Replicas = new(int32(3)) })
		Eventually(func() int32 { return ptr.Deref(deployment(ctx, project).Spec.Replicas, 0) }).WithContext(ctx).Should(BeEquivalentTo(3))
		Eventually(label).WithContext(ctx).Should(Equal("phoneproof-operator"))
	})
})

var _ = Describe("An upgrade of the operator", func() {
	It("gives new pods to a few projects at a time, over restarts and leaders", func(ctx SpecContext) {
		const projects, limit = 8, 3
		namespace := newNamespace(ctx)
		o := usual()
		o.MaxUnreadyRollouts = limit
		first := operate(ctx, operator, o, namespace)
		all := make([]*verifyv1.VerificationProject, projects)
		for i := range all {
			all[i] = create(ctx, newProject(namespace, "shop-"+string(rune('a'+i))))
		}
		for _, project := range all {
			makeReady(ctx, project)
		}
		first.stop()

		o.Render.Image = "ghcr.io/phoneproof/phoneproof:2.0.0"
		rolled := func() (out []*appsv1.Deployment) {
			for _, project := range all {
				if d := deployment(ctx, project); d.Spec.Template.Spec.Containers[0].Image == o.Render.Image {
					out = append(out, d)
				}
			}
			return out
		}
		begun := func() *appsv1.Deployment {
			all := rolled()
			return all[slices.IndexFunc(all, isUnderway)]
		}
		second := operate(ctx, operator, o, namespace)
		Eventually(rolled).WithContext(ctx).Should(HaveLen(limit))
		for _, project := range all {
			if deployment(ctx, project).Spec.Template.Spec.Containers[0].Image != o.Render.Image {
				expectCondition(ctx, project, verifyv1.ConditionReconciling, "True", verifyv1.ReasonRolloutQueued)
				expectCondition(ctx, project, verifyv1.ConditionReady, "True", verifyv1.ReasonReady)
			}
		}

		By("going on as one becomes ready")
		Expect(playRollout(ctx, begun(), allReady)).To(Succeed())
		Eventually(rolled).WithContext(ctx).Should(HaveLen(limit + 1))

		By("counting what another operator began")
		second.stop()
		operate(ctx, operator, o, namespace)
		Consistently(rolled).WithContext(ctx).WithTimeout(10 * settling).Should(HaveLen(limit + 1))

		By("neither waiting for stuck rollouts, nor delaying a project's own change")
		Expect(playRollout(ctx, begun(), givenUp)).To(Succeed())
		Eventually(rolled).WithContext(ctx).Should(HaveLen(limit + 2))
		last := all[projects-1]
		for _, project := range all {
			if deployment(ctx, project).Spec.Template.Spec.Containers[0].Image != o.Render.Image {
				last = project
			}
		}
		change(ctx, last, func(s *spec) { s.DisplayName = "Shop" })
		Eventually(rolled).WithContext(ctx).Should(HaveLen(limit + 3))

		runKubelets(ctx, namespace)
		Eventually(rolled).WithContext(ctx).Should(HaveLen(projects))
		for _, project := range all {
			setRollout(ctx, project, allReady) // including the stuck one
			report(ctx, project)
			Eventually(find).WithContext(ctx).WithArguments(ctx, project, verifyv1.ConditionReconciling).Should(BeZero())
			expectReady(ctx, project)
		}
	})
})

var _ = Describe("A rollout that does not become ready", func() {
	It("is reported, while the former pods answer", func(ctx SpecContext) {
		operate(ctx, operator, usual())
		project := create(ctx, newProject(newNamespace(ctx), "shop"))
		makeReady(ctx, project)
		change(ctx, project, func(s *spec) { s.Server.NodeSelector = map[string]verifyv1.LabelValue{"pool": "none"} })
		expectCondition(ctx, project, verifyv1.ConditionReady, "False", verifyv1.ReasonProgressing)
		setRollout(ctx, project, oldReady)
		expectCondition(ctx, project, verifyv1.ConditionReconciling, "True", verifyv1.ReasonProgressing)
		setRollout(ctx, project, givenUp)
		stalled := expectCondition(ctx, project, verifyv1.ConditionStalled, "True", verifyv1.ReasonRolloutStuck)
		Expect(stalled.Message).To(HavePrefix("the new pods do not become ready"))
		Expect(find(ctx, project, verifyv1.ConditionReconciling)).To(BeZero())
		expectCondition(ctx, project, verifyv1.ConditionReady, "False", verifyv1.ReasonRolloutStuck)
		expectCondition(ctx, project, verifyv1.ConditionAvailable, "True", verifyv1.ReasonPodsAvailable)
		expectEvent(ctx, project, corev1.EventTypeWarning, verifyv1.ReasonRolloutStuck)

		By("correcting and applying everything as before")
		Expect(kubectl(ctx, "delete", "--namespace", project.Namespace, "service", "phoneproof-shop")).To(ContainSubstring("deleted"))
		Eventually(children).WithContext(ctx).WithArguments(ctx, project).Should(ContainElement("Service phoneproof-shop"))
		change(ctx, project, func(s *spec) { s.Server.NodeSelector = nil })
		expectCondition(ctx, project, verifyv1.ConditionReconciling, "True", verifyv1.ReasonProgressing)
		Expect(find(ctx, project, verifyv1.ConditionStalled)).To(BeZero())
		makeReady(ctx, project)

		By("reporting when no pod answers any more")
		d := deployment(ctx, project)
		d.Status.ReadyReplicas, d.Status.AvailableReplicas = 0, 0
		Expect(admin.Status().Update(ctx, d)).To(Succeed())
		expectCondition(ctx, project, verifyv1.ConditionReady, "False", verifyv1.ReasonPodsUnavailable)
		expectEvent(ctx, project, corev1.EventTypeWarning, verifyv1.ReasonPodsUnavailable)
		setRollout(ctx, project, allReady)
		expectReady(ctx, project)
		expectEvent(ctx, project, corev1.EventTypeNormal, verifyv1.ReasonReady)
	})
})
