package project

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

var _ = Describe("A foreign change of the children", func() {
	patch := func(ctx context.Context, object client.Object, merge string) {
		GinkgoHelper()
		Expect(admin.Patch(ctx, object, client.RawPatch(types.StrategicMergePatchType, []byte(merge)))).To(Succeed())
	}

	It("is corrected by one write, even while another project is rolled out", func(ctx SpecContext) {
		o := usual()
		o.MaxUnreadyRollouts = 1
		op := startSteppedOperator(ctx, operator, o)
		deployment(ctx, create(ctx, newProject(newNamespace(ctx), "unready")))
		project := create(ctx, newProject(newNamespace(ctx), "shop"))
		makeReady(ctx, project)
		op.stop()
		op = startSteppedOperator(ctx, operator, o)
		settle(ctx)
		before := deployment(ctx, project)
		writes := len(accepted(op.written(project.Namespace, "deployments")))

		patch(ctx, deployment(ctx, project), `{"spec": {"replicas": 0, "template": {"spec": {"containers": [{"name": "server", "image": "evil"}]}}}}`)
		Expect(imageOf(ctx, project)).To(Equal(usual().Render.Image))
		makeReady(ctx, project)
		after := deployment(ctx, project)
		Expect(after.Spec).To(Equal(before.Spec))
		Expect(after.Generation-before.Generation).To(BeEquivalentTo(2), "the change, and its undoing")
		Expect(accepted(op.written(project.Namespace, "deployments"))).To(HaveLen(writes + 1))

		By("leaving fields of other owners unchanged")
		patch(ctx, deployment(ctx, project), `{"metadata": {"annotations": {"example.com/team": "blue"}}}`)
		elapse(ctx, 2*correctionInterval)
		Expect(deployment(ctx, project).Annotations).To(HaveKeyWithValue("example.com/team", "blue"))
	})

	It("is corrected after a deletion", func(ctx SpecContext) {
		startSteppedOperator(ctx, operator, usual())
		project := create(ctx, newProject(newNamespace(ctx), "shop"))
		makeReady(ctx, project)
		for _, name := range children(ctx, project) {
			Expect(kubectl(ctx, "delete", "--namespace", project.Namespace, kindOf(name), nameOf(name))).To(ContainSubstring("deleted"))
		}
		Expect(children(ctx, project)).To(HaveLen(4))
		makeReady(ctx, project)
	})

	It("is corrected a few times at once and then once a minute if it is repeated", func(ctx SpecContext) {
		op := startSteppedOperator(ctx, operator, usual())
		project := create(ctx, newProject(newNamespace(ctx), "shop"))
		makeReady(ctx, project)
		writes := len(accepted(op.written(project.Namespace, "services")))
		corrections := func() int { return len(accepted(op.written(project.Namespace, "services"))) - writes }
		service := func() *corev1.Service {
			settle(ctx)
			s := &corev1.Service{}
			Expect(admin.Get(ctx, client.ObjectKey{Namespace: project.Namespace, Name: "phoneproof-shop"}, s)).To(Succeed())
			return s
		}
		label := func() string { return service().Labels["app.kubernetes.io/managed-by"] }
		overwrite := func() { patch(ctx, service(), `{"metadata": {"labels": {"app.kubernetes.io/managed-by": "another"}}}`) }
		for range correctionBurst {
			overwrite()
			Expect(label()).To(Equal("phoneproof-operator"))
		}
		overwrite()
		elapse(ctx, correctionInterval/2)
		Expect(label()).To(Equal("another"))
		elapse(ctx, correctionInterval/2)
		Expect(label()).To(Equal("phoneproof-operator"))
		Expect(corrections()).To(Equal(correctionBurst + 1))

		By("applying a change of the project at once")
		overwrite()
		Expect(label()).To(Equal("another"))
		change(ctx, project, func(s *spec) { s.Server.Replicas = new(int32(3)) })
		Expect(ptr.Deref(deployment(ctx, project).Spec.Replicas, 0)).To(BeEquivalentTo(3))
		Expect(label()).To(Equal("phoneproof-operator"))
	})
})

var _ = Describe("An upgrade of the operator", func() {
	It("replaces the pods of a few projects at a time, also after a restart", func(ctx SpecContext) {
		const projects, limit = 8, 3
		const asking = askDelay + projects*askInterval // after it every project has asked again
		namespace := newNamespace(ctx)
		o := usual()
		o.MaxUnreadyRollouts = limit
		first := startSteppedOperator(ctx, operator, o, namespace)
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
		second := startSteppedOperator(ctx, operator, o, namespace)
		Expect(rolled()).To(HaveLen(limit))
		for _, project := range all {
			if imageOf(ctx, project) != o.Render.Image {
				expectCondition(ctx, project, verifyv1.ConditionReconciling, "True", verifyv1.ReasonRolloutQueued)
				expectCondition(ctx, project, verifyv1.ConditionReady, "True", verifyv1.ReasonReady)
			}
		}

		By("beginning the next rollout when one is ready")
		Expect(playRollout(ctx, begun(), allReady)).To(Succeed())
		elapse(ctx, asking)
		Expect(rolled()).To(HaveLen(limit + 1))

		By("counting the rollouts that another operator began")
		second.stop()
		startSteppedOperator(ctx, operator, o, namespace)
		elapse(ctx, asking)
		Expect(rolled()).To(HaveLen(limit + 1))

		By("not waiting for stuck rollouts, and not delaying a project's own change")
		Expect(playRollout(ctx, begun(), givenUp)).To(Succeed())
		elapse(ctx, asking)
		Expect(rolled()).To(HaveLen(limit + 2))
		last := all[projects-1]
		for _, project := range all {
			if imageOf(ctx, project) != o.Render.Image {
				last = project
			}
		}
		change(ctx, last, func(s *spec) { s.DisplayName = "Shop" })
		Expect(rolled()).To(HaveLen(limit + 3))

		for range projects {
			finishRollouts(ctx, namespace)
			elapse(ctx, asking)
		}
		Expect(rolled()).To(HaveLen(projects))
		for _, project := range all {
			setRollout(ctx, project, allReady) // including the stuck one
			report(ctx, project)
			Expect(find(ctx, project, verifyv1.ConditionReconciling)).To(BeZero())
			expectReady(ctx, project)
		}
	})
})

var _ = Describe("Projects that wait for a turn", func() {
	const latest = "ghcr.io/phoneproof/phoneproof:2.0.0"
	// upgrade starts an operator with another image, after its projects had their pods.
	upgrade := func(
		ctx context.Context, as *rest.Config, image string, projects, limit int,
	) (*steppedOperator, []*verifyv1.VerificationProject) {
		GinkgoHelper()
		namespace := newNamespace(ctx)
		o := usual()
		o.MaxUnreadyRollouts = limit
		former := startSteppedOperator(ctx, operator, o, namespace)
		all := make([]*verifyv1.VerificationProject, projects)
		for i := range all {
			all[i] = create(ctx, newProject(namespace, fmt.Sprintf("p%d", i)))
		}
		finishRollouts(ctx, namespace)
		settle(ctx)
		former.stop()
		o.Render.Image = image
		latter := startSteppedOperator(ctx, as, o, namespace)
		settle(ctx)
		return latter, all
	}
	countReason := func(ctx context.Context, all []*verifyv1.VerificationProject, condition, reason string) (n int) {
		GinkgoHelper()
		for _, project := range all {
			if find(ctx, project, condition).Reason == reason {
				n++
			}
		}
		return n
	}

	// Attacks projects that each look for a turn at their own pace: the work of an operator at rest would grow with their number.
	It("ask one after the other, and get the turns of rollouts that take too long", func(ctx SpecContext) {
		const projects, limit = 6, 2
		op, all := upgrade(ctx, operator, latest, projects, limit)
		queued := func() int { return countReason(ctx, all, verifyv1.ConditionReconciling, verifyv1.ReasonRolloutQueued) }
		Expect(queued()).To(Equal(projects - limit))
		reconciled, written := op.reconciled, op.written()
		for began := steppedClock.Now(); steppedClock.Since(began) < maxRolloutTime-3*askDelay; {
			elapse(ctx, askDelay)
		}
		Expect(op.written()).To(Equal(written))
		Expect(op.reconciled - reconciled).To(BeNumerically("<=", (projects-limit)*maxRolloutTime/askDelay))

		elapse(ctx, 5*askDelay)
		Expect(queued()).To(Equal(projects - 2*limit))
	})

	// Attacks a turn that ends without a rollout: it would count for ten minutes.
	It("get a turn that another project could not use", func(ctx SpecContext) {
		const projects = 4
		const refused = ""
		_, all := upgrade(ctx, operator, refused, projects, 1)
		Expect(countReason(ctx, all, verifyv1.ConditionStalled, verifyv1.ReasonChildRejected)).To(Equal(projects))
	})

	// Attacks a rollout that never gives what is wanted: each look at it would end its turn.
	It("wait for rollouts in progress, also if the cluster's admission rewrites images", func(ctx SpecContext) {
		const projects, mirrored = 3, "mirror.example/phoneproof:2.0.0"
		as := rest.CopyConfig(operator)
		as.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(request *http.Request) (*http.Response, error) {
				if request.Body != nil {
					body, err := io.ReadAll(request.Body)
					if err != nil {
						return nil, err
					}
					body = bytes.ReplaceAll(body, []byte(latest), []byte(mirrored))
					request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
				}
				return next.RoundTrip(request)
			})
		})
		_, all := upgrade(ctx, as, latest, projects, 1)
		rolled := func() (n int) {
			for _, project := range all {
				if imageOf(ctx, project) == mirrored {
					n++
				}
			}
			return n
		}
		for n := range projects {
			elapse(ctx, askDelay+projects*askInterval)
			Expect(rolled()).To(Equal(n + 1))
			finishRollouts(ctx, all[0].Namespace)
		}
	})
})

var _ = Describe("A rollout that does not become ready", func() {
	It("is reported, while the former pods answer", func(ctx SpecContext) {
		startSteppedOperator(ctx, operator, usual())
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

		By("still correcting and applying children")
		Expect(kubectl(ctx, "delete", "--namespace", project.Namespace, "service", "phoneproof-shop")).To(ContainSubstring("deleted"))
		Expect(children(ctx, project)).To(ContainElement("Service phoneproof-shop"))
		change(ctx, project, func(s *spec) { s.Server.NodeSelector = nil })
		expectCondition(ctx, project, verifyv1.ConditionReconciling, "True", verifyv1.ReasonProgressing)
		Expect(find(ctx, project, verifyv1.ConditionStalled)).To(BeZero())
		makeReady(ctx, project)

		By("reporting pods that the API server refuses, and after ten minutes that they stall")
		refused := deployment(ctx, project)
		s := &refused.Status
		s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas = 1, 1, 1, 1
		refused.Status.Conditions = append(refused.Status.Conditions, appsv1.DeploymentCondition{
			Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: `pods "phoneproof-shop-7d9c8b6f5-x7k2p" is forbidden: exceeded quota`,
			LastTransitionTime: metav1.NewTime(steppedClock.Now()),
		})
		Expect(admin.Status().Update(ctx, refused)).To(Succeed())
		expectCondition(ctx, project, verifyv1.ConditionReconciling, "True", verifyv1.ReasonPodsRefused)
		expectEvent(ctx, project, corev1.EventTypeWarning, verifyv1.ReasonPodsRefused)
		elapse(ctx, startDeadline)
		expectCondition(ctx, project, verifyv1.ConditionStalled, "True", verifyv1.ReasonPodsRefused)
		ready := expectCondition(ctx, project, verifyv1.ConditionReady, "True", verifyv1.ReasonPodsRefused)
		Expect(ready.Message).To(Equal("1 of 2 pods: the API server refuses to create the others: a pod is forbidden: exceeded quota"))
		setRollout(ctx, project, allReady)

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
