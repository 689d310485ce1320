package project

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

var _ = Describe("Pods that the API server refuses", func() {
	now := time.Unix(1_800_000_000, 0)
	const quota = `pods "phoneproof-shop-7d9c8b6f5-x7k2p" is forbidden: exceeded quota: compute, requested: pods=1`
	const custom = `admission webhook "w.example.com" denied the request: pod shop/phoneproof-shop-7d9c8b6f5-x7k2p of ` +
		`phoneproof-shop-7d9c8b6f5 lacks a label; label Pod "phoneproof-shop-7d9c8b6f5-x7k2p"`
	// refused returns a Deployment of four pods, more of which have been refused since that time.
	refused := func(state rollout, ago time.Duration, answer, updated, all int32) *appsv1.Deployment {
		d := pods(state, answer)
		d.Name = "phoneproof-shop"
		d.Spec.Replicas, d.Status.UpdatedReplicas, d.Status.Replicas = new(int32(4)), updated, all
		d.Status.Conditions = append(d.Status.Conditions, appsv1.DeploymentCondition{
			Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: quota, LastTransitionTime: metav1.NewTime(now.Add(-ago)),
		})
		return d
	}
	declared := func(replicas int32, autoscaled bool) *verifyv1.VerificationProject {
		p := newProject("shop", "shop")
		p.Spec.Server.Replicas = &replicas
		if autoscaled {
			p.Spec.Server.Autoscaling = &verifyv1.Autoscaling{MinReplicas: &replicas, MaxReplicas: 9}
		}
		p.Status.Conditions = serveConditions(0)
		return p
	}
	const (
		words   = ": the API server refuses to create the others: a pod is forbidden: exceeded quota: compute, requested: pods=1"
		missing = "1 of 4 pods" + words
		none    = "0 of 4 new pods" + words
	)
	type shown struct {
		ready               metav1.ConditionStatus
		reason, message     string
		reconciling, stalls bool
		left                time.Duration
	}
	DescribeTable("are reported with its words", func(p *verifyv1.VerificationProject, d *appsv1.Deployment, want shown) {
		o := outcome{project: p, deployment: d, now: now}
		ready := o.readyCondition()
		got := shown{ready: ready.Status, reason: ready.Reason, message: ready.Message}
		for _, c := range o.conditions() {
			if c.Type == verifyv1.ConditionReconciling || c.Type == verifyv1.ConditionStalled {
				Expect([]string{c.Reason, c.Message}).To(Equal([]string{want.reason, want.message}))
				got.reconciling, got.stalls = got.reconciling || c.Type == verifyv1.ConditionReconciling, got.stalls || c.Type == verifyv1.ConditionStalled
			}
		}
		_, got.left = o.findRefusal()
		Expect(got).To(Equal(want))
	},
		Entry("while a pod answers", declared(4, false), refused(rolledOut, time.Minute, 1, 1, 1),
			shown{"True", "PodsRefused", missing, true, false, startDeadline - time.Minute}),
		Entry("for ten minutes", declared(4, false), refused(rolledOut, startDeadline, 1, 1, 1), shown{"True", "PodsRefused", missing, false, true, 0}),
		Entry("for ten minutes, of an autoscaler that wants more than the least", declared(1, true), refused(rolledOut, startDeadline, 1, 1, 1),
			shown{"True", "PodsRefused", missing, false, false, 0}),
		Entry("for ten minutes, of an autoscaler that has less than the least", declared(2, true), refused(rolledOut, startDeadline, 1, 1, 1),
			shown{"True", "PodsRefused", missing, false, true, 0}),
		Entry("of a new project", declared(4, false), refused(rolling, time.Second, 0, 0, 0),
			shown{"False", "PodsRefused", none, true, false, startDeadline - time.Second}),
		Entry("of a new project whose first pod answers", declared(4, false), refused(rolling, 0, 1, 1, 1),
			shown{"True", "PodsRefused", "1 of 4 new pods" + words, true, false, startDeadline}),
		Entry("of a rollout, while the former pods answer", declared(4, false), refused(rolling, 0, 4, 0, 4),
			shown{"False", "PodsRefused", none, true, false, startDeadline}),
		Entry("of a rollout that is stuck", declared(4, false), refused(stuck, 0, 4, 0, 4), shown{"False", "PodsRefused", none, false, true, 0}),
		Entry("not counting a pod that is not ready", declared(4, false), refused(rolledOut, time.Minute, 1, 3, 3),
			shown{"True", "PodsRefused", "3 of 4 pods" + words, true, false, startDeadline - time.Minute}),
		Entry("not if none is missing", declared(4, false), refused(rolledOut, 0, 1, 4, 4),
			shown{"True", "Ready", "the API works as declared", false, false, 0}),
		Entry("not before the Deployment's controller has seen a change", declared(4, false), refused(unseen, 0, 1, 1, 1),
			shown{"True", "Ready", "the API works as declared", false, false, 0}),
	)

	It("are reported by the same words at each try", func() {
		d := refused(rolledOut, 0, 1, 1, 1)
		d.Status.Conditions[1].Message = custom
		b, _ := outcome{project: declared(4, false), deployment: d, now: now}.findRefusal()
		Expect(b.message).To(HaveSuffix(`denied the request: pod shop/a pod of phoneproof-shop-7d9c8b6f5 lacks a label; label a pod`))
		d.Name = strings.Repeat("n", 49) // the API server cuts off the end of the hash
		d.Status.Conditions[1].Message = `pods "` + d.Name + `-7d9c8b6fx7k2p" is forbidden`
		b, _ = outcome{project: declared(4, false), deployment: d, now: now}.findRefusal()
		Expect(b.message).To(HaveSuffix("the others: a pod is forbidden"))
	})

	It("stay reported while the Deployment's controller has not seen another number of pods", func() {
		p := declared(4, false)
		p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{Type: verifyv1.ConditionReady, Reason: verifyv1.ReasonPodsRefused})
		b, _ := outcome{project: p, deployment: refused(unseen, 0, 1, 1, 1), now: now}.findRefusal()
		Expect(b.message).To(Equal(missing))
	})

	It("have one Event, however many there are and however long it lasts", func() {
		o := outcome{project: declared(4, false), deployment: pods(rolledOut, 4), now: now}
		before := o.conditions()
		o.deployment = refused(rolledOut, 0, 1, 1, 1)
		first := o.conditions()
		Expect(findTransition(before, first)).To(Equal(&projectEvent{corev1.EventTypeWarning, verifyv1.ReasonPodsRefused, missing}))
		o.deployment, o.now = refused(rolledOut, startDeadline, 2, 2, 2), now
		later := o.conditions()
		Expect(meta.FindStatusCondition(later, verifyv1.ConditionStalled).Message).To(HavePrefix("2 of 4"))
		Expect(findTransition(first, later)).To(BeNil())
		o.now = now.Add(-startDeadline)
		o.project.Status.Conditions = serveConditions(0, verifyv1.ConditionSecretsReady, "False", "SecretMissing")
		Expect(findTransition(first, o.conditions())).To(BeNil(), "it is not over while Ready names what the pods report")
		Expect(findTransition(later, before)).To(Equal(&projectEvent{corev1.EventTypeNormal, "Ready", "PodsRefused is over"}))
	})
})
