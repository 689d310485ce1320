package project

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// ownConditions are those that the operator applies. All others of a project are serve's.
var ownConditions = []string{
	verifyv1.ConditionReady, verifyv1.ConditionReconciling, verifyv1.ConditionStalled, verifyv1.ConditionAvailable,
	verifyv1.ConditionShared,
}

// outcome is what came of a project's reconciliation, and what its conditions are judged by.
type outcome struct {
	project    *verifyv1.VerificationProject
	deployment *appsv1.Deployment // as it was observed; nil if there is none
	blocker    *blocker           // nil if the project is carried out as it declares
	beside     *blocker           // what stalls a project that is suspended; nil if nothing does
	shared     *blocker           // what the project has in common with others of other namespaces; nil if nothing
	claims     []verifyv1.AccountClaim
	// sharedHosts are the host names among that.
	sharedHosts []string
	now         time.Time
	// rolled tells that the pod template was changed just now, so that deployment does not know of it yet.
	rolled bool
	// err is what is to be tried again, and again when to look again where nothing brings the project back.
	err   error
	again time.Duration
}

// conditions returns the operator's conditions, without times. They follow kstatus: Reconciling, Stalled and Shared are there
// only while they are true.
func (o outcome) conditions() []metav1.Condition {
	list := []metav1.Condition{o.ready(), o.available()}
	if c, ok := o.reconciling(); ok {
		list = append(list, c)
	}
	if b := o.stalled(); b != nil {
		list = append(list, o.condition(verifyv1.ConditionStalled, metav1.ConditionTrue, b.reason, b.message))
	}
	if s := o.shared; s != nil {
		list = append(list, o.condition(verifyv1.ConditionShared, metav1.ConditionTrue, s.reason, s.message))
	}
	return list
}

// stalled returns what somebody has to do something about; nil if there is nothing. A stuck rollout is that while nothing
// else is on its way, which may end it.
func (o outcome) stalled() *blocker {
	switch b := o.blocker; {
	case o.beside != nil:
		return o.beside
	case b != nil && b.weight == stalls:
		return b
	case b != nil && b.weight != plain:
		return nil
	case o.stuck():
		return &blocker{stalls, verifyv1.ReasonRolloutStuck, rolloutStuck}
	default:
		return nil
	}
}

// stuck tells whether new pods had their time to become ready.
func (o outcome) stuck() bool {
	return !o.project.Suspended() && !o.rolled && rolloutOf(o.deployment) == stuck
}

const rolloutStuck = "the new pods do not become ready, so the former ones were kept; " +
	"look at the pods of the project's Deployment and their events"

// ready is the answer to "does it work as declared?", and if not, the one thing to look at first.
func (o outcome) ready() metav1.Condition {
	condition := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return o.condition(verifyv1.ConditionReady, status, reason, message)
	}
	if b := o.blocker; b != nil && b.weight != aside {
		return condition(metav1.ConditionFalse, b.reason, b.message)
	}
	// What serve says is worth more than that pods come and go: it names what to mend.
	if c := o.reported(metav1.ConditionFalse); c != nil && available(o.deployment) {
		return condition(metav1.ConditionFalse, c.Reason, c.Message)
	}
	if o.stuck() {
		return condition(metav1.ConditionFalse, verifyv1.ReasonRolloutStuck, rolloutStuck)
	}
	if message := o.rolling(); message != "" {
		return condition(metav1.ConditionFalse, verifyv1.ReasonProgressing, message)
	}
	if !available(o.deployment) {
		return condition(metav1.ConditionFalse, verifyv1.ReasonPodsUnavailable, podsUnavailable)
	}
	if c := o.reported(metav1.ConditionUnknown); c != nil {
		return condition(metav1.ConditionUnknown, c.Reason, c.Message)
	}
	return condition(metav1.ConditionTrue, verifyv1.ReasonReady, "the API works as declared")
}

const suspendedMessage = "spec.suspend is true: no pod runs, requests stay stored and due webhooks wait"

const podsUnavailable = "no pod answers; look at the pods of the project's Deployment and their events"

func (o outcome) available() metav1.Condition {
	switch {
	case available(o.deployment):
		return o.condition(verifyv1.ConditionAvailable, metav1.ConditionTrue, verifyv1.ReasonPodsAvailable, "at least one pod answers")
	case o.project.Suspended():
		return o.condition(verifyv1.ConditionAvailable, metav1.ConditionFalse, verifyv1.ReasonSuspended, suspendedMessage)
	default:
		return o.condition(verifyv1.ConditionAvailable, metav1.ConditionFalse, verifyv1.ReasonPodsUnavailable, podsUnavailable)
	}
}

func (o outcome) reconciling() (c metav1.Condition, ok bool) {
	reason, message := verifyv1.ReasonProgressing, o.rolling()
	if b := o.blocker; b != nil {
		switch b.weight {
		case stalls:
			return metav1.Condition{}, false
		case waits, aside:
			reason, message = b.reason, b.message
		case plain:
		}
	}
	return o.condition(verifyv1.ConditionReconciling, metav1.ConditionTrue, reason, message), message != ""
}

// rolling says what pods are on their way; empty if none are, or are stuck.
func (o outcome) rolling() string {
	const underway = "new pods are being started; the former ones answer until these are ready"
	state := rolloutOf(o.deployment)
	switch {
	case o.project.Suspended():
		return ""
	case o.rolled:
		state = rolling
	}
	switch state {
	case rolledOut:
		if o.starting() > 0 {
			return "pods are being started"
		}
		return ""
	case paused:
		return "the project's Deployment was paused, so its new pods are not started; run kubectl rollout resume"
	case unseen:
		// Whoever changed the Deployment said then whether pods are to be replaced, or only more or fewer to run.
		if o.starting() == 0 && !meta.IsStatusConditionTrue(o.project.Status.Conditions, verifyv1.ConditionReconciling) {
			return ""
		}
		return underway
	case rolling:
		return underway
	default:
		return ""
	}
}

// startDeadline is how long the pods of a project that was suspended may take to answer. With a new template the cluster
// itself counts that time, and it is the same.
const startDeadline = 10 * time.Minute

// starting returns how much longer pods that run again after a suspension may take; zero if they do not, or had their time.
func (o outcome) starting() time.Duration {
	if available(o.deployment) {
		return 0
	}
	conditions := o.project.Status.Conditions
	if c := meta.FindStatusCondition(conditions, verifyv1.ConditionAvailable); c != nil && c.Reason == verifyv1.ReasonSuspended {
		return startDeadline
	}
	c := meta.FindStatusCondition(conditions, verifyv1.ConditionReconciling)
	if c == nil || c.Reason != verifyv1.ReasonProgressing {
		return 0
	}
	return max(0, c.LastTransitionTime.Add(startDeadline).Sub(o.now))
}

// reported returns the first condition that serve owes the project and that has the status; nil if none has. One that is
// missing, or that speaks of another generation of the spec, is unknown.
func (o outcome) reported(status metav1.ConditionStatus) *metav1.Condition {
	for _, name := range folded(&o.project.Spec) {
		c := meta.FindStatusCondition(o.project.Status.Conditions, name)
		if c == nil || c.ObservedGeneration != o.project.Generation {
			c = &metav1.Condition{Type: name, Status: metav1.ConditionUnknown, Reason: verifyv1.ReasonNotReported,
				Message: "no running pod has reported " + name + " for this spec yet"}
		}
		if c.Status == status {
			return c
		}
	}
	return nil
}

// folded returns the conditions that Ready consists of, first the ones that others follow from. WebhookHealthy is none of
// them: a receiver that is down is not this API's fault.
func folded(spec *verifyv1.VerificationProjectSpec) []string {
	names := []string{verifyv1.ConditionSecretsReady, verifyv1.ConditionStorageReady}
	if spec.WhatsApp != nil {
		names = append(names, verifyv1.ConditionWhatsAppReady)
	}
	if spec.Telegram != nil {
		names = append(names, verifyv1.ConditionTelegramReady)
	}
	return names
}

func (o outcome) condition(name string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{
		Type: name, Status: status, Reason: reason, Message: message, ObservedGeneration: o.project.Generation,
	}
}

// timed gives each condition its lastTransitionTime: that of before, while its status is the same.
func timed(list, before []metav1.Condition, now metav1.Time) []metav1.Condition {
	out := slices.Clone(list)
	for i := range out {
		out[i].LastTransitionTime = now
		if old := meta.FindStatusCondition(before, out[i].Type); old != nil && old.Status == out[i].Status {
			out[i].LastTransitionTime = old.LastTransitionTime
		}
	}
	return out
}

// recorded tells whether a project's status says all this already.
func recorded(
	status *verifyv1.VerificationProjectStatus, generation int64, want []metav1.Condition, claims []verifyv1.AccountClaim,
) bool {
	unclaimed := func(want verifyv1.AccountClaim) bool {
		return !slices.ContainsFunc(status.Claims, func(have verifyv1.AccountClaim) bool {
			return have.Account == want.Account && have.Since.Equal(&want.Since)
		})
	}
	if status.ObservedGeneration != generation || slices.ContainsFunc(claims, unclaimed) {
		return false
	}
	var have []metav1.Condition
	for _, c := range status.Conditions {
		if slices.Contains(ownConditions, c.Type) {
			have = append(have, c)
		}
	}
	return len(have) == len(want) && !slices.ContainsFunc(want, func(c metav1.Condition) bool { return !slices.Contains(have, c) })
}

func conditionOf(c *metav1.Condition) *metav1ac.ConditionApplyConfiguration {
	return metav1ac.Condition().WithType(c.Type).WithStatus(c.Status).WithReason(c.Reason).WithMessage(c.Message).
		WithObservedGeneration(c.ObservedGeneration).WithLastTransitionTime(c.LastTransitionTime)
}
