package projectstatus

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/internal/webhook"
)

// failuresToReport is how many attempts must fail in a row before a receiver counts as failing: a single failure can be a deploy.
const failuresToReport = 3

// refusals maps each reason for which our own rules refuse an attempt to what is wrong with the URL, and how to correct it.
var refusals = map[string]string{
	string(webhook.ReasonBlockedAddress): "the host of spec.webhook.url does not exist, or leads to an address that the cluster's " +
		"administrator has not allowed; see --webhook-allow",
	string(webhook.ReasonBlockedPort): "spec.webhook.url has a port of the cluster's own (etcd, control plane, kubelet), " +
		"which no webhook may use; use another one",
	string(webhook.ReasonPlainHTTP): "spec.webhook.url is plain http to a public address; use https",
}

// stickyReasons are reasons that a new leader cannot verify before the next attempt.
var stickyReasons = []string{verifyv1.ReasonReceiverFailing, verifyv1.ReasonAddressRefused}

// receiverState is the state of a receiver by its attempts.
type receiverState int

const (
	receiverUnknown receiverState = iota // nothing in this term so far: the former leader's result still holds
	receiverHealthy
	receiverFailing
	receiverRefused // its address is refused
)

// evidence is the result of the attempts in this term. Its zero value is the state before the first attempt.
type evidence struct {
	state    receiverState
	failures int    // in a row
	cause    string // of the attempt that made it fail, or be refused
}

// withAttempt returns the evidence with one more attempt.
func (e evidence) withAttempt(a verification.Attempt) evidence {
	if a.Delivered {
		return evidence{state: receiverHealthy}
	}
	e.failures++
	switch _, ours := refusals[a.Reason]; {
	case ours: // not a deploy, and the next attempt will be refused too
		e.state, e.cause = receiverRefused, a.Reason
	case e.failures >= failuresToReport && e.state != receiverFailing:
		e.state, e.cause = receiverFailing, a.Reason
	}
	return e
}

// webhookHealthy judges the receiver. present is the current condition, which carries the state of former leaders.
func webhookHealthy(s *settings.Settings, e evidence, present *metav1.Condition) metav1.Condition {
	if s.EventPolicy() == verification.EventsPaused && !s.AwaitsSigningSecret() {
		return conditionFalse(verifyv1.ConditionWebhookHealthy, verifyv1.ReasonSigningSecretMissing,
			"the Secret of spec.webhook.secretRef cannot be used; events wait for it; see the condition SecretsReady")
	}
	remembered := present != nil && present.Status == metav1.ConditionFalse && slices.Contains(stickyReasons, present.Reason)
	switch {
	case e.state == receiverFailing:
		if remembered && present.Reason == verifyv1.ReasonReceiverFailing {
			return *present // another cause of the same problem is no change
		}
		message := "the webhook's receiver fails (" + e.cause + "); events wait and are sent again"
		if s.Webhook.SecretNewline && strings.HasPrefix(e.cause, "http_4") { // it may have refused the signature
			message += "; the newline at the end of the secret is not part of the key that signs: a receiver must ignore it, too"
		}
		return conditionFalse(verifyv1.ConditionWebhookHealthy, verifyv1.ReasonReceiverFailing, message)
	case e.state == receiverRefused:
		return conditionFalse(verifyv1.ConditionWebhookHealthy, verifyv1.ReasonAddressRefused, refusals[e.cause])
	case e.state == receiverUnknown && remembered:
		return *present
	case s.AwaitsSigningSecret():
		return metav1.Condition{Type: verifyv1.ConditionWebhookHealthy, Status: metav1.ConditionUnknown, Reason: verifyv1.ReasonAwaitingRollout,
			Message: "the Secret of spec.webhook.secretRef is not mounted into this pod yet; events wait for a pod that has it"}
	default:
		return conditionTrue(verifyv1.ConditionWebhookHealthy, verifyv1.ReasonNoFailures,
			"the webhook's receiver takes events, as far as is known")
	}
}
