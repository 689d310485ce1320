package project

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

var _ = Describe("The reason of Ready", func() {
	// Each step adds a problem to those before it, in the opposite order of docs/conditions.md.
	It("is that of the first problem by the order of docs/conditions.md", func() {
		o := outcome{project: newProject("shop", "shop"), deployment: pods(rolledOut, 1), now: time.Unix(1_800_000_000, 0)}
		o.project.Status.Conditions = serveConditions(0)
		says := func(conditionType, status, reason string) func() {
			return func() {
				c := meta.FindStatusCondition(o.project.Status.Conditions, conditionType)
				c.Status, c.Reason = metav1.ConditionStatus(status), reason
			}
		}
		is := func(d *appsv1.Deployment) func() { return func() { o.deployment = d } }
		for _, step := range []struct {
			reason string
			add    func()
		}{
			{"Ready", func() {}},
			{"Registering", says(verifyv1.ConditionTelegramReady, "Unknown", "Registering")},
			{"PodsUnavailable", is(pods(rolledOut, 0))},
			{"Progressing", is(pods(rolling, 0))},
			{"RolloutStuck", is(pods(stuck, 0))},
			{"PodsRefused", func() {
				o.deployment.Status.Conditions = append(o.deployment.Status.Conditions,
					appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue})
			}},
			{"CallbackTaken", says(verifyv1.ConditionTelegramReady, "False", "CallbackTaken")},
			{"StorageUnreachable", says(verifyv1.ConditionStorageReady, "False", "StorageUnreachable")},
			{"SecretMissing", says(verifyv1.ConditionSecretsReady, "False", "SecretMissing")},
			{"Progressing", func() { o.rolled = true }},
			{"Conflict", func() { o.blocker = &blocker{stalls, verifyv1.ReasonConflict, "m"} }},
			{"Suspended", func() { o.blocker = &blocker{plain, verifyv1.ReasonSuspended, "m"} }},
		} {
			step.add()
			Expect(o.readyCondition().Reason).To(Equal(step.reason))
		}
	})

	It("is what the pods said last, with its time, if none answers: a Secret that was repaired since is not reported while no image is pulled", func() {
		o := outcome{project: newProject("shop", "shop"), deployment: pods(rolledOut, 1)}
		o.project.Status.Conditions = serveConditions(0, verifyv1.ConditionSecretsReady, "False", "SecretMissing")
		o.project.Status.Conditions[0].LastTransitionTime = metav1.NewTime(time.Date(2027, 1, 31, 10, 0, 0, 0, time.FixedZone("CET", 3600)))
		Expect(o.readyCondition().Message).To(Equal("says SecretsReady"))
		o.deployment = pods(stuck, 0)
		Expect(o.readyCondition()).To(And(HaveField("Reason", "SecretMissing"),
			HaveField("Message", "no pod answers; the pods last said, at 2027-01-31T09:00:00Z: says SecretsReady; "+
				"if that is solved, look at the pods of the project's Deployment and their events")))
		Expect(o.findStall().reason).To(Equal(verifyv1.ReasonRolloutStuck))
	})

	It("has an Event if no pod answers any more, also where it repeats what the pods said last", func() {
		o := outcome{project: newProject("shop", "shop"), deployment: pods(rolledOut, 1)}
		o.project.Status.Conditions = serveConditions(0, verifyv1.ConditionSecretsReady, "False", "SecretMissing")
		before := o.conditions()
		o.deployment = pods(rolling, 0)
		Expect(findTransition(before, o.conditions())).To(BeNil(), "pods are being started")
		o.deployment = pods(rolledOut, 0)
		Expect(findTransition(before, o.conditions())).To(Equal(&projectEvent{corev1.EventTypeWarning, verifyv1.ReasonPodsUnavailable, podsUnavailable}))
	})
})
