package project

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// ownConditions are the conditions that the operator applies. All others of a project are serve's.
var ownConditions = []string{
	verifyv1.ConditionReady, verifyv1.ConditionReconciling, verifyv1.ConditionStalled, verifyv1.ConditionAvailable,
	verifyv1.ConditionShared,
}

// outcome is the result of a project's reconciliation, and the input of its conditions.
type outcome struct {
	project    *verifyv1.VerificationProject
	deployment *appsv1.Deployment // as observed; nil if there is none
	blocker    *blocker           // nil if the project is carried out as declared
	beside     *blocker           // what stalls a suspended project; nil if nothing does
	shared     *blocker           // what the project shares with projects of other namespaces; nil if nothing
	claims     []verifyv1.AccountClaim
	// sharedHosts are the shared host names.
	sharedHosts []string
	now         time.Time
	// rolled is set if the pod template was changed just now, so that deployment does not show it yet.
	rolled bool
	// err is the failure to retry, and again the delay of the next reconciliation if no event causes one.
	err   error
	again time.Duration
}

// conditions returns the operator's conditions, without times. They follow kstatus: Reconciling, Stalled and Shared exist only
// while they are true.
func (o outcome) conditions() []metav1.Condition {
	list := []metav1.Condition{o.readyCondition(), o.availableCondition()}
	if c, ok := o.reconcilingCondition(); ok {
		list = append(list, c)
	}
	if b := o.findStall(); b != nil {
		list = append(list, o.newCondition(verifyv1.ConditionStalled, metav1.ConditionTrue, b.reason, b.message))
	}
	if s := o.shared; s != nil {
		list = append(list, o.newCondition(verifyv1.ConditionShared, metav1.ConditionTrue, s.reason, s.message))
	}
	return list
}

// findStall returns the blocker that needs an action by a person; nil if there is none. A stuck rollout counts unless another
// change is in progress, which may end it.
func (o outcome) findStall() *blocker {
	switch b := o.blocker; {
	case o.beside != nil:
		return o.beside
	case b != nil && b.weight == stalls:
		return b
	case b != nil && b.weight != plain:
		return nil
	}
	switch refused, _ := o.findRefusal(); {
	case refused != nil && refused.weight == stalls:
		return refused
	case o.isStuck():
		return &blocker{stalls, verifyv1.ReasonRolloutStuck, rolloutStuck}
	default:
		return nil
	}
}

// isStuck reports whether new pods failed to become ready in time.
func (o outcome) isStuck() bool {
	return !o.project.Suspended() && !o.rolled && rolloutOf(o.deployment) == stuck
}

const rolloutStuck = "the new pods do not become ready, so the former ones were kept; " +
	"look at the pods of the project's Deployment and their events"

// readyCondition answers "does it work as declared?" and, if not, names the first thing to look at.
func (o outcome) readyCondition() metav1.Condition {
	condition := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return o.newCondition(verifyv1.ConditionReady, status, reason, message)
	}
	if b := o.blocker; b != nil && b.weight != aside {
		return condition(metav1.ConditionFalse, b.reason, b.message)
	}
	// Serve's conditions matter more than pods that come and go, because they name what to correct. Pods that were replaced just now
	// have not reported.
	if c := o.findReported(metav1.ConditionFalse); c != nil && (isAvailable(o.deployment) || !o.rolled) {
		message := c.Message
		if !isAvailable(o.deployment) {
			message = fmt.Sprintf(lastReported, c.LastTransitionTime.UTC().Format(time.RFC3339), c.Message)
		}
		return condition(metav1.ConditionFalse, c.Reason, message)
	}
	refused, _ := o.findRefusal()
	switch message := o.describeRollout(); {
	case refused != nil && (!isAvailable(o.deployment) || hasFormerPods(o.deployment)):
		return condition(metav1.ConditionFalse, refused.reason, refused.message)
	case refused != nil:
	case o.isStuck():
		return condition(metav1.ConditionFalse, verifyv1.ReasonRolloutStuck, rolloutStuck)
	case message != "":
		return condition(metav1.ConditionFalse, verifyv1.ReasonProgressing, message)
	case !isAvailable(o.deployment):
		return condition(metav1.ConditionFalse, verifyv1.ReasonPodsUnavailable, podsUnavailable)
	}
	if c := o.findReported(metav1.ConditionUnknown); c != nil {
		return condition(metav1.ConditionUnknown, c.Reason, c.Message)
	}
	if refused != nil {
		return condition(metav1.ConditionTrue, refused.reason, refused.message)
	}
	return condition(metav1.ConditionTrue, verifyv1.ReasonReady, "the API works as declared")
}

const suspendedMessage = "spec.suspend is true: no pod runs, requests stay stored and due webhooks wait"

// lastReported takes the time and the message of a condition. Its cause may be solved: no pod reports that while none runs.
const lastReported = "no pod answers; the pods last said, at %s: %s; " +
	"if that is solved, look at the pods of the project's Deployment and their events"

const podsUnavailable = "no pod answers; look at the pods of the project's Deployment and their events"

func (o outcome) availableCondition() metav1.Condition {
	switch {
	case isAvailable(o.deployment):
		return o.newCondition(verifyv1.ConditionAvailable, metav1.ConditionTrue, verifyv1.ReasonPodsAvailable, "at least one pod answers")
	case o.project.Suspended():
		return o.newCondition(verifyv1.ConditionAvailable, metav1.ConditionFalse, verifyv1.ReasonSuspended, suspendedMessage)
	default:
		return o.newCondition(verifyv1.ConditionAvailable, metav1.ConditionFalse, verifyv1.ReasonPodsUnavailable, podsUnavailable)
	}
}

func (o outcome) reconcilingCondition() (c metav1.Condition, ok bool) {
	reason, message := verifyv1.ReasonProgressing, o.describeRollout()
	if refused, _ := o.findRefusal(); refused != nil {
		reason, message = refused.reason, refused.message
		if refused.weight != waits {
			message = ""
		}
	}
	if b := o.blocker; b != nil {
		switch b.weight {
		case stalls:
			return metav1.Condition{}, false
		case waits, aside:
			reason, message = b.reason, b.message
		case plain:
		}
	}
	return o.newCondition(verifyv1.ConditionReconciling, metav1.ConditionTrue, reason, message), message != ""
}

// describeRollout returns which pods are being started; empty if none are, or if they are stuck.
func (o outcome) describeRollout() string {
	underway := "pods are being started"
	if isAvailable(o.deployment) {
		underway = "new pods are being started; the former ones answer until these are ready"
	}
	state := rolloutOf(o.deployment)
	switch {
	case o.project.Suspended():
		return ""
	case o.rolled:
		state = rolling
	}
	switch state {
	case rolledOut:
		if o.remainingStart() > 0 {
			return underway
		}
		return ""
	case paused:
		return "the project's Deployment was paused, so its new pods are not started; run kubectl rollout resume"
	case unseen:
		// The last change of the Deployment already reported whether pods are replaced, or only their number changes.
		if o.remainingStart() == 0 && !meta.IsStatusConditionTrue(o.project.Status.Conditions, verifyv1.ConditionReconciling) {
			return ""
		}
		return underway
	case rolling:
		return underway
	default:
		return ""
	}
}

// startDeadline is how long the pods of a formerly suspended project may take to answer. With a new template the cluster itself
// counts that time, and it is the same.
const startDeadline = 10 * time.Minute

// remainingStart returns how much longer pods that run again after a suspension may take; zero if there are none, or their time
// is over.
func (o outcome) remainingStart() time.Duration {
	if isAvailable(o.deployment) {
		return 0
	}
	conditions := o.project.Status.Conditions
	if c := meta.FindStatusCondition(conditions, verifyv1.ConditionAvailable); c != nil && c.Reason == verifyv1.ReasonSuspended {
		return startDeadline
	}
	c := meta.FindStatusCondition(conditions, verifyv1.ConditionReconciling)
	if c == nil || c.Reason != verifyv1.ReasonProgressing && c.Reason != verifyv1.ReasonPodsRefused {
		return 0
	}
	return max(0, c.LastTransitionTime.Add(startDeadline).Sub(o.now))
}

// findReported returns the first condition that serve reports on the project with this status; nil if there is none. One that is
// missing, or of another generation of the spec, is unknown.
func (o outcome) findReported(status metav1.ConditionStatus) *metav1.Condition {
	for _, name := range readyInputs(&o.project.Spec) {
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

// readyInputs returns the conditions that Ready depends on, causes first. WebhookHealthy is not among them: a receiver that is
// down is not this API's fault.
func readyInputs(spec *verifyv1.VerificationProjectSpec) []string {
	names := []string{verifyv1.ConditionSecretsReady, verifyv1.ConditionStorageReady}
	if spec.WhatsApp != nil {
		names = append(names, verifyv1.ConditionWhatsAppReady)
	}
	if spec.Telegram != nil {
		names = append(names, verifyv1.ConditionTelegramReady)
	}
	return names
}

func (o outcome) newCondition(name string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{
		Type: name, Status: status, Reason: reason, Message: message, ObservedGeneration: o.project.Generation,
	}
}

// withTimes sets the lastTransitionTime of each condition: the former one while its status is the same.
func withTimes(list, before []metav1.Condition, now metav1.Time) []metav1.Condition {
	out := slices.Clone(list)
	for i := range out {
		out[i].LastTransitionTime = now
		if old := meta.FindStatusCondition(before, out[i].Type); old != nil && old.Status == out[i].Status {
			out[i].LastTransitionTime = old.LastTransitionTime
		}
	}
	return out
}

// isRecorded reports whether a project's status contains all this already.
func isRecorded(
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
