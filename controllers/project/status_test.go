package project

import (
	"errors"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/apply"
)

// pods returns a Deployment in a state of its rollout, with that many pods that answer.
func pods(state rollout, answer int32) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	d.Status.ObservedGeneration, d.Status.AvailableReplicas = 2, answer
	reason := map[rollout]string{rolledOut: reasonRolledOut, rolling: "ReplicaSetUpdated", stuck: reasonStuck, unseen: reasonRolledOut}[state]
	if state == unseen {
		d.Status.ObservedGeneration = 1
	}
	d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Reason: reason}}
	return d
}

// serveConditions returns serve's conditions, all True for this generation except those given as TYPE, STATUS, REASON.
func serveConditions(generation int64, others ...string) []metav1.Condition {
	var list []metav1.Condition
	for _, name := range []string{verifyv1.ConditionSecretsReady, verifyv1.ConditionStorageReady, verifyv1.ConditionTelegramReady} {
		c := metav1.Condition{Type: name, Status: metav1.ConditionTrue, Reason: "Fine", ObservedGeneration: generation}
		for i := 0; i < len(others); i += 3 {
			if others[i] == name {
				c.Status, c.Reason, c.Message = metav1.ConditionStatus(others[i+1]), others[i+2], "says "+name
			}
		}
		list = append(list, c)
	}
	return list
}

var _ = Describe("The conditions", func() {
	now := time.Unix(1_800_000_000, 0)
	was := func(name, status, reason string, ago time.Duration) metav1.Condition {
		return metav1.Condition{Type: name, Status: metav1.ConditionStatus(status), Reason: reason, LastTransitionTime: metav1.NewTime(now.Add(-ago))}
	}
	// shown lists the operator's conditions as TYPE=STATUS REASON.
	shown := func(o outcome) (out []string) {
		o.now = now
		for _, c := range o.conditions() {
			Expect(c.ObservedGeneration).To(BeEquivalentTo(3))
			Expect(c.Message).NotTo(BeEmpty())
			out = append(out, c.Type+"="+string(c.Status)+" "+c.Reason)
		}
		return out
	}
	project := func(conditions ...metav1.Condition) *verifyv1.VerificationProject {
		p := newProject("shop", "shop")
		p.Generation = 3
		p.Status.Conditions = conditions
		return p
	}
	suspended := func(p *verifyv1.VerificationProject) *verifyv1.VerificationProject {
		p.Spec.Suspend = new(true)
		return p
	}
	const (
		up   = "Available=True PodsAvailable"
		down = "Available=False PodsUnavailable"
	)
	DescribeTable("name the first problem to look at",
		func(o outcome, want ...string) { Expect(shown(o)).To(Equal(want)) },
		Entry("all is well", outcome{project: project(serveConditions(3)...), deployment: pods(rolledOut, 2)}, "Ready=True Ready", up),
		Entry("no message comes, and events are refused", outcome{
			project: project(append(serveConditions(3), was(verifyv1.ConditionSilent, "True", verifyv1.ReasonNoMessages, time.Hour),
				was(verifyv1.ConditionWebhookHealthy, "False", verifyv1.ReasonReceiverFailing, time.Hour))...), deployment: pods(rolledOut, 2),
		}, "Ready=True Ready", up),
		Entry("nothing is there yet", outcome{project: project()}, "Ready=False Progressing", down, "Reconciling=True Progressing"),
		Entry("pods are being started", outcome{project: project(), deployment: pods(rolling, 0)},
			"Ready=False Progressing", down, "Reconciling=True Progressing"),
		Entry("pods were replaced just now", outcome{project: project(serveConditions(3)...), deployment: pods(rolledOut, 2), rolled: true},
			"Ready=False Progressing", up, "Reconciling=True Progressing"),
		Entry("new pods do not become ready", outcome{project: project(serveConditions(3)...), deployment: pods(stuck, 2)},
			"Ready=False RolloutStuck", up, "Stalled=True RolloutStuck"),
		Entry("new pods do not become ready, and serve knows why", outcome{
			project: project(serveConditions(3, verifyv1.ConditionSecretsReady, "False", "SecretMissing")...), deployment: pods(stuck, 2),
		}, "Ready=False SecretMissing", up, "Stalled=True RolloutStuck"),
		Entry("the first pods do not become ready", outcome{project: project(), deployment: pods(stuck, 0)},
			"Ready=False RolloutStuck", down, "Stalled=True RolloutStuck"),
		Entry("a stuck rollout gets other pods", outcome{project: project(serveConditions(3)...), deployment: pods(stuck, 2), rolled: true},
			"Ready=False Progressing", up, "Reconciling=True Progressing"),
		Entry("a stuck rollout gets other pods when it has a turn", outcome{
			project: project(serveConditions(3)...), deployment: pods(stuck, 2), blocker: &blocker{aside, verifyv1.ReasonRolloutQueued, "m"},
		}, "Ready=False RolloutStuck", up, "Reconciling=True RolloutQueued"),
		Entry("new pods do not become ready, and something else is missing", outcome{
			project: project(serveConditions(3)...), deployment: pods(stuck, 2), blocker: &blocker{plain, verifyv1.ReasonGatewayAPIMissing, "m"},
		}, "Ready=False GatewayAPIMissing", up, "Stalled=True RolloutStuck"),
		Entry("no pod answers", outcome{project: project(serveConditions(3)...), deployment: pods(rolledOut, 0)},
			"Ready=False PodsUnavailable", down),
		Entry("serve has not reported", outcome{project: project(), deployment: pods(rolledOut, 2)}, "Ready=Unknown NotReported", up),
		Entry("serve's reports are for another spec", outcome{project: project(serveConditions(2)...), deployment: pods(rolledOut, 2)},
			"Ready=Unknown NotReported", up),
		Entry("a secret is missing", outcome{
			project:    project(serveConditions(3, verifyv1.ConditionSecretsReady, "False", "SecretMissing", verifyv1.ConditionTelegramReady, "False", "SecretsNotReady")...),
			deployment: pods(rolledOut, 2),
		}, "Ready=False SecretMissing", up),
		Entry("a secret is missing while pods are replaced: the secret comes first",
			outcome{project: project(serveConditions(3, verifyv1.ConditionSecretsReady, "False", "SecretMissing")...), deployment: pods(rolling, 2)},
			"Ready=False SecretMissing", up, "Reconciling=True Progressing"),
		Entry("a secret is missing, and no pod answers",
			outcome{project: project(serveConditions(3, verifyv1.ConditionSecretsReady, "False", "SecretMissing")...), deployment: pods(rolledOut, 0)},
			"Ready=False SecretMissing", down),
		Entry("a known problem comes before an unknown status",
			outcome{project: project(serveConditions(3, verifyv1.ConditionSecretsReady, "Unknown", "AwaitingRollout", verifyv1.ConditionTelegramReady, "False", "CallbackTaken")...), deployment: pods(rolledOut, 2)},
			"Ready=False CallbackTaken", up),
		Entry("a pod does not see a new reference yet",
			outcome{project: project(serveConditions(3, verifyv1.ConditionSecretsReady, "Unknown", "AwaitingRollout")...), deployment: pods(rolledOut, 2)},
			"Ready=Unknown AwaitingRollout", up),
		Entry("a stalled project is not reconciling", outcome{
			project: project(serveConditions(3)...), deployment: pods(rolling, 1), blocker: &blocker{stalls, verifyv1.ReasonConflict, "m"},
		}, "Ready=False Conflict", up, "Stalled=True Conflict"),
		Entry("a project that waits for its turn works", outcome{
			project: project(serveConditions(3)...), deployment: pods(rolledOut, 1), blocker: &blocker{aside, verifyv1.ReasonRolloutQueued, "m"},
		}, "Ready=True Ready", up, "Reconciling=True RolloutQueued"),
		Entry("a temporary failure is reconciling", outcome{
			project: project(serveConditions(3)...), deployment: pods(rolledOut, 1), blocker: &blocker{waits, verifyv1.ReasonProgressing, "m"},
		}, "Ready=False Progressing", up, "Reconciling=True Progressing"),
		Entry("the Gateway API is missing", outcome{
			project: project(serveConditions(3)...), deployment: pods(rolledOut, 1), blocker: &blocker{plain, verifyv1.ReasonGatewayAPIMissing, "m"},
		}, "Ready=False GatewayAPIMissing", up),
		Entry("suspended", outcome{
			project: suspended(project(serveConditions(3)...)), deployment: pods(rolling, 0), blocker: &blocker{plain, verifyv1.ReasonSuspended, "m"},
		}, "Ready=False Suspended", "Available=False Suspended"),
		Entry("suspended, with a conflict", outcome{
			project: suspended(project(serveConditions(3)...)), deployment: pods(stuck, 0), blocker: &blocker{plain, verifyv1.ReasonSuspended, "m"},
			beside: &blocker{stalls, verifyv1.ReasonConflict, "n"},
		}, "Ready=False Suspended", "Available=False Suspended", "Stalled=True Conflict"),
		Entry("suspended while new pods do not become ready", outcome{
			project: suspended(project(serveConditions(3)...)), deployment: pods(stuck, 0), blocker: &blocker{plain, verifyv1.ReasonSuspended, "m"},
		}, "Ready=False Suspended", "Available=False Suspended"),
		Entry("pods start after a suspension", outcome{
			project:    project(append(serveConditions(3), was("Available", "False", "Suspended", time.Hour))...),
			deployment: pods(unseen, 0),
		}, "Ready=False Progressing", down, "Reconciling=True Progressing"),
		Entry("they are still starting", outcome{
			project:    project(append(serveConditions(3), was("Available", "False", "PodsUnavailable", time.Hour), was("Reconciling", "True", "Progressing", time.Minute))...),
			deployment: pods(rolledOut, 0),
		}, "Ready=False Progressing", down, "Reconciling=True Progressing"),
		Entry("they took too long", outcome{
			project:    project(append(serveConditions(3), was("Reconciling", "True", "Progressing", startDeadline))...),
			deployment: pods(rolledOut, 0),
		}, "Ready=False PodsUnavailable", down),
		Entry("only the number of pods was changed", outcome{project: project(serveConditions(3)...), deployment: pods(unseen, 2)}, "Ready=True Ready", up),
		Entry("the template was changed, as reported before", outcome{
			project:    project(append(serveConditions(3), was("Reconciling", "True", "Progressing", time.Minute))...),
			deployment: pods(unseen, 2),
		}, "Ready=False Progressing", up, "Reconciling=True Progressing"),
	)

	It("keep the time of their last transition, and are written only when they differ", func() {
		o := outcome{project: project(serveConditions(3)...), deployment: pods(rolledOut, 2), now: now}
		o.claims = []verifyv1.AccountClaim{newAccountClaim("telegram:x_bot", now)}
		first := withTimes(o.conditions(), nil, metav1.NewTime(now))
		status := &verifyv1.VerificationProjectStatus{ObservedGeneration: 3, Conditions: append(first, serveConditions(3)...), Claims: o.claims}
		later := withTimes(o.conditions(), status.Conditions, metav1.NewTime(now.Add(time.Hour)))
		Expect(later).To(Equal(first))
		Expect(isRecorded(status, 3, later, o.claims)).To(BeTrue())
		Expect(isRecorded(status, 4, later, o.claims)).To(BeFalse(), "another generation")
		Expect(isRecorded(status, 3, later[1:], o.claims)).To(BeFalse(), "one less")
		Expect(isRecorded(status, 3, later, []verifyv1.AccountClaim{newAccountClaim("telegram:x_bot", now.Add(time.Second))})).
			To(BeFalse(), "another claim")
		status.Conditions[0].Message = "foreign"
		Expect(isRecorded(status, 3, later, o.claims)).To(BeFalse(), "another writer's message")

		o.deployment = pods(rolledOut, 0)
		down := withTimes(o.conditions(), first, metav1.NewTime(now.Add(time.Hour)))
		Expect(down[0].LastTransitionTime.Time).To(Equal(now.Add(time.Hour)))
	})
})

var _ = Describe("The result of applying", func() {
	o := func(edit func(*spec)) *observed {
		project := newProject("shop", "shop")
		edit(&project.Spec)
		return &observed{project: project}
	}
	nothing := func(*spec) {}
	none := hostDecision{}
	ref := apply.Ref{Kind: "Service", Name: "phoneproof-shop"}
	DescribeTable("is reported as the problem that needs an action first",
		func(seen *observed, result apply.Result, decided hostDecision, held bool, reason, message string) {
			b, again := findObstacle(seen, result, decided, held)
			if reason == "" {
				Expect(b).To(BeNil())
				Expect(again).To(BeZero())
				return
			}
			Expect(b.reason).To(Equal(reason))
			Expect(b.message).To(ContainSubstring(message))
		},
		Entry("nothing", o(nothing), apply.Result{Applied: []apply.Ref{ref}}, none, false, "", ""),
		Entry("a conflict", o(nothing), apply.Result{Conflicts: []apply.Ref{ref, ref}, Rejections: []apply.Rejection{{Ref: ref}}}, none, true,
			verifyv1.ReasonConflict, "Service phoneproof-shop, Service phoneproof-shop exists"),
		Entry("a refusal", o(nothing), apply.Result{Rejections: []apply.Rejection{{Ref: ref, Field: "spec.x", Message: "no"}}}, none, true,
			verifyv1.ReasonChildRejected, "refuses Service phoneproof-shop: spec.x: no"),
		Entry("a refusal as a whole", o(nothing), apply.Result{Rejections: []apply.Rejection{{Ref: ref, Message: "quota"}}}, none, false,
			verifyv1.ReasonChildRejected, "refuses Service phoneproof-shop: quota"),
		Entry("a host of another namespace", o(nothing), apply.Result{}, hostDecision{denied: []string{"a.example.com"}, held: []string{"b.example.com"}},
			true, verifyv1.ReasonNotPermitted, `"a.example.com" is granted to another namespace`),
		Entry("a host that another project has", o(nothing), apply.Result{}, hostDecision{open: []string{"a.example.com"}, held: []string{"b.example.com"}},
			true, verifyv1.ReasonHostInUse, `another project already answers to the host name "b.example.com"`),
		Entry("no Gateway API", o(func(s *spec) { s.Expose.HTTPRoute = &verifyv1.HTTPRouteSettings{} }), apply.Result{}, none, false,
			verifyv1.ReasonGatewayAPIMissing, "install the Gateway API"),
		Entry("a turn to wait for", o(nothing), apply.Result{}, none, true, verifyv1.ReasonRolloutQueued, "upgrade"),
	)

	It("is retried after a minute if a host is held, because no event announces that it is free", func() {
		for _, result := range []apply.Result{{}, {Rejections: []apply.Rejection{{Ref: ref}}}} {
			_, again := findObstacle(o(nothing), result, hostDecision{held: []string{"a.example.com"}, delay: unreadDelay}, false)
			Expect(again).To(Equal(time.Minute))
		}
		Expect(findSooner(afterHeld, time.Minute)).To(Equal(time.Minute), "the time to start ends before")
		Expect(findSooner(0, afterHeld)).To(Equal(afterHeld))
		Expect(findSooner(afterHeld, 0)).To(Equal(afterHeld))
	})

	It("has the same message for the same cause, whatever the server adds", func() {
		err := apierrors.NewServerTimeout(schema.GroupResource{Resource: "services"}, "create", 17)
		Expect(unfinishedBlocker(err, false)).To(Equal(&blocker{waits, verifyv1.ReasonProgressing,
			"not everything is applied yet: the API server answers ServerTimeout; it is tried again"}))
		Expect(unfinishedBlocker(errors.New("dial tcp 10.0.0.1:443: connection refused"), true)).To(Equal(&blocker{aside, verifyv1.ReasonProgressing,
			"not everything is applied yet: the API server does not answer; it is tried again"}))
	})
})

var _ = Describe("An Event", func() {
	is := func(status, reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: verifyv1.ConditionReady, Status: metav1.ConditionStatus(status), Reason: reason, Message: message}}
	}
	stalled := func(reason, message string) metav1.Condition {
		return metav1.Condition{Type: verifyv1.ConditionStalled, Status: metav1.ConditionTrue, Reason: reason, Message: message}
	}
	DescribeTable("reports problems and their end",
		func(before, after []metav1.Condition, want *projectEvent) {
			Expect(findTransition(before, after)).To(Equal(want))
		},
		Entry("not for the usual way to Ready", nil, is("False", "Progressing", "m"), nil),
		Entry("not for becoming Ready", is("Unknown", "NotReported", "m"), is("True", "Ready", "m"), nil),
		Entry("of a problem", is("True", "Ready", "m"), is("False", "Conflict", "m"), &projectEvent{corev1.EventTypeWarning, "Conflict", "m"}),
		Entry("of a problem from the start", nil, is("False", "NotPermitted", "m"), &projectEvent{corev1.EventTypeWarning, "NotPermitted", "m"}),
		Entry("not twice", is("False", "Conflict", "m"), is("False", "Conflict", "m"), nil),
		Entry("of another cause", is("False", "Conflict", "m"), is("False", "Conflict", "n"), &projectEvent{corev1.EventTypeWarning, "Conflict", "n"}),
		Entry("of its end", is("False", "Conflict", "m"), is("False", "Progressing", "n"), &projectEvent{corev1.EventTypeNormal, "Progressing", "Conflict is over"}),
		Entry("of a suspension", is("True", "Ready", "m"), is("False", "Suspended", "n"), &projectEvent{corev1.EventTypeNormal, "Suspended", "n"}),
		Entry("of a rollout that is stuck, whatever serve says", is("False", "SecretMissing", "m"),
			append(is("False", "SecretMissing", "m"), stalled("RolloutStuck", "n")), &projectEvent{corev1.EventTypeWarning, "RolloutStuck", "n"}),
		Entry("of its end, whatever serve says", append(is("False", "SecretMissing", "m"), stalled("RolloutStuck", "n")),
			is("False", "SecretMissing", "m"), &projectEvent{corev1.EventTypeNormal, "SecretMissing", "RolloutStuck is over"}),
		Entry("of a conflict of a suspended project", is("False", "Suspended", "m"),
			append(is("False", "Suspended", "m"), stalled("Conflict", "n")), &projectEvent{corev1.EventTypeWarning, "Conflict", "n"}),
		Entry("shortened to what an Event takes", nil, is("False", "Conflict", strings.Repeat("é", 600)),
			&projectEvent{corev1.EventTypeWarning, "Conflict", strings.Repeat("é", 500) + "..."}),
		Entry("of a host that another project has", is("True", "Ready", "m"), is("False", "HostInUse", "n"),
			&projectEvent{corev1.EventTypeWarning, "HostInUse", "n"}),
		Entry("not of serve's problems", is("True", "Ready", "m"), is("False", "SecretMissing", "n"), nil),
	)
})

var _ = Describe("Sharing with other namespaces", func() {
	elsewhere := []client.ObjectKey{{Namespace: "secret-plans", Name: "moon-base"}}

	It("is reported without the names of the other projects", func() {
		Expect(describeShared([]account{{name: "telegram:x_bot"}}, nil)).To(BeNil())
		s := describeShared([]account{{name: "whatsapp:007"}, {name: "telegram:x_bot", elsewhere: elsewhere}}, []string{"a.example.com"})
		Expect(s.reason).To(Equal(verifyv1.ReasonAccountShared))
		Expect(s.message).To(And(HavePrefix("spec.telegram.botUsername: "), ContainSubstring("--grant-account"),
			ContainSubstring(`"a.example.com"`), Not(ContainSubstring("secret-plans")), Not(ContainSubstring("moon-base"))))
		Expect(describeShared(nil, []string{"a.example.com"}).reason).To(Equal(verifyv1.ReasonHostShared))
	})

	It("has a condition that does not affect Ready, and one Event", func() {
		o := outcome{project: newProject("shop", "shop"), deployment: pods(rolledOut, 2)}
		o.project.Status.Conditions = serveConditions(0)
		before := o.conditions()
		o.shared = describeShared([]account{{name: "telegram:x_bot", elsewhere: elsewhere}}, nil)
		after := o.conditions()
		Expect(after[:len(before)]).To(Equal(before))
		Expect(after[len(before):]).To(HaveExactElements(And(HaveField("Type", verifyv1.ConditionShared), HaveField("Reason", verifyv1.ReasonAccountShared))))
		Expect(newlyShared(before, before)).To(BeNil())
		Expect(newlyShared(before, after)).To(Equal(&projectEvent{corev1.EventTypeWarning, verifyv1.ReasonAccountShared, after[len(before)].Message}))
		Expect(newlyShared(after, after)).To(BeNil())
	})
})
