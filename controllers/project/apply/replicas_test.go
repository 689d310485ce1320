package apply_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/apply"
)

var _ = Describe("The number of pods", func() {
	var w *appliedProject
	autoscaling := &verifyv1.Autoscaling{MinReplicas: new(int32(2)), MaxReplicas: 10}

	replicas := func(ctx context.Context) int {
		GinkgoHelper()
		return int(*read[appsv1.Deployment](ctx, w).Spec.Replicas)
	}
	// scale does what an autoscaler does.
	scale := func(ctx context.Context, n int32) {
		GinkgoHelper()
		d := read[appsv1.Deployment](ctx, w)
		wish := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: n}}
		Expect(admin.SubResource("scale").Update(ctx, d, client.WithSubResourceBody(wish), client.FieldOwner("kube-controller-manager"))).
			To(Succeed())
	}

	BeforeEach(func(ctx SpecContext) {
		w = newAppliedProject(ctx, smallest())
		w.project.Spec.Server.Replicas = new(int32(5))
		w.applyAll(ctx)
	})

	It("never falls while an autoscaler takes it over", func(ctx SpecContext) {
		history := watchReplicas(ctx, w)

		w.project.Spec.Server.Autoscaling = autoscaling
		result, writes := w.apply(ctx)
		Expect(result.Applied).To(Equal(w.refs("HorizontalPodAutoscaler")), "the Deployment is unchanged")
		Expect(writes).To(Equal(1))

		By("changing something else before the autoscaler has chosen a number")
		w.options.Image = "another"
		result, _ = w.apply(ctx)
		Expect(result.Applied).To(Equal(w.refs("Deployment")))
		Expect(replicas(ctx)).To(Equal(5))

		By("letting it choose one")
		scale(ctx, 7)
		_, writes = w.apply(ctx)
		Expect(writes).To(BeZero())
		w.options.Image = "a third one"
		w.applyAll(ctx)
		Expect(replicas(ctx)).To(Equal(7))

		By("letting it choose a lower one")
		scale(ctx, 5)
		w.options.Image = "a fourth one"
		w.applyAll(ctx)
		Expect(history()).To(HaveEach(BeNumerically(">=", 5)))
		Expect(history()).To(ContainElements(5, 7))
	})

	It("is not reset by an operator that has not seen the autoscaler's choice yet", func(ctx SpecContext) {
		w.project.Spec.Server.Autoscaling = autoscaling
		w.applyAll(ctx)
		observed := w.observe(ctx)
		scale(ctx, 7)
		w.options.Image = "another"
		_, _, err := w.tryApply(ctx, apply.Request{Observed: observed})
		Expect(err).To(MatchError(ContainSubstring("apply Deployment")))
		Expect(replicas(ctx)).To(Equal(7))
		w.applyAll(ctx)
		Expect(replicas(ctx)).To(Equal(7))
		Expect(read[appsv1.Deployment](ctx, w).Spec.Template.Spec.Containers[0].Image).To(Equal("another"))
	})

	It("is kept if it is edited before the autoscaler has chosen one", func(ctx SpecContext) {
		w.project.Spec.Server.Autoscaling = autoscaling
		w.applyAll(ctx)
		d := read[appsv1.Deployment](ctx, w)
		d.Spec.Replicas = new(int32(6))
		Expect(admin.Update(ctx, d)).To(Succeed())
		w.applyAll(ctx)
		Expect(replicas(ctx)).To(Equal(6))
	})

	It("starts at the minimum if there is an autoscaler from the start", func(ctx SpecContext) {
		w = newAppliedProject(ctx, smallest())
		w.project.Spec.Server.Autoscaling = &verifyv1.Autoscaling{MinReplicas: new(int32(3)), MaxReplicas: 10}
		w.applyAll(ctx)
		Expect(replicas(ctx)).To(Equal(3))
	})

	It("is the declared one again once there is no autoscaler, which goes first", func(ctx SpecContext) {
		w.project.Spec.Server.Autoscaling = autoscaling
		w.applyAll(ctx)
		scale(ctx, 9)
		w.project.Spec.Server.Autoscaling, w.project.Spec.Server.Replicas = nil, new(int32(4))
		result, writes := w.apply(ctx)
		Expect(writes).To(Equal(2))
		Expect(w.writes.all()[0]).To(HavePrefix("DELETE "))
		Expect(result.Deleted).To(Equal(w.refs("HorizontalPodAutoscaler")))
		Expect(replicas(ctx)).To(Equal(4))
		_, writes = w.apply(ctx)
		Expect(writes).To(BeZero())
	})

	It("is 0 while suspended, without an autoscaler, and starts again after that", func(ctx SpecContext) {
		w.project.Spec.Server.Autoscaling = autoscaling
		w.applyAll(ctx)
		scale(ctx, 9)

		w.project.Spec.Suspend = new(true)
		w.applyAll(ctx)
		Expect(replicas(ctx)).To(Equal(0))
		Expect(w.get(ctx, &autoscalingv2.HorizontalPodAutoscaler{})).To(MatchError(ContainSubstring("not found")))

		w.project.Spec.Suspend = nil
		w.applyAll(ctx)
		Expect(replicas(ctx)).To(Equal(2), "an autoscaler ignores 0")
		read[autoscalingv2.HorizontalPodAutoscaler](ctx, w)
		scale(ctx, 8)
		_, writes := w.apply(ctx)
		Expect(writes).To(BeZero())
	})

	It("is the declared one after a suspension", func(ctx SpecContext) {
		w.project.Spec.Suspend = new(true)
		w.applyAll(ctx)
		Expect(replicas(ctx)).To(Equal(0))
		w.project.Spec.Suspend = nil
		w.applyAll(ctx)
		Expect(replicas(ctx)).To(Equal(5))
	})

	It("is corrected after a manual scale, unless an autoscaler decides", func(ctx SpecContext) {
		scale(ctx, 1)
		_, writes := w.apply(ctx)
		Expect(writes).To(Equal(1))
		Expect(replicas(ctx)).To(Equal(5))

		w.project.Spec.Server.Autoscaling = autoscaling
		w.applyAll(ctx)
		scale(ctx, 0) // at 0 an autoscaler would never act again
		w.applyAll(ctx)
		Expect(replicas(ctx)).To(Equal(2))
	})
})

// watchReplicas records the number of pods in every version of the Deployment from now on. The returned function returns all of
// them up to the version at the time of its call.
func watchReplicas(ctx SpecContext, w *appliedProject) func() []int {
	GinkgoHelper()
	d := read[appsv1.Deployment](ctx, w)
	events, err := admin.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(w.project.Namespace),
		client.MatchingFields{"metadata.name": d.Name})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(events.Stop)
	var seen []int
	version := d.ResourceVersion
	return func() []int {
		GinkgoHelper()
		current := read[appsv1.Deployment](ctx, w).ResourceVersion
		for version != current { // a watch may be late
			select {
			case event := <-events.ResultChan():
				d, ok := event.Object.(*appsv1.Deployment)
				Expect(ok).To(BeTrue(), "%v", event)
				seen, version = append(seen, int(*d.Spec.Replicas)), d.ResourceVersion
			case <-time.After(timeout):
				Fail("the watch does not show the current Deployment")
			}
		}
		return seen
	}
}
