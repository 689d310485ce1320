package projectstatus

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/internal/webhook"
)

// failuresToTell is how many attempts must fail in a row before a receiver is said to be failing: one can be a deploy.
const failuresToTell = 3

// refusals say of each reason for which our own rules refuse an attempt what is wrong with the URL, and what mends it.
var refusals = map[string]string{
	string(webhook.ReasonBlockedAddress): "the host of spec.webhook.url does not exist, or leads to an address that the cluster's " +
		"administrator has not allowed; see --webhook-allow",
	string(webhook.ReasonBlockedPort): "spec.webhook.url has a port of the cluster's own (etcd, control plane, kubelet), " +
		"which no webhook may use; use another one",
	string(webhook.ReasonPlainHTTP): "spec.webhook.url is plain http to a public address; use https",
}

// troubles are the reasons that a new leader cannot see for itself before the next attempt.
var troubles = []string{verifyv1.ReasonReceiverFailing, verifyv1.ReasonAddressRefused}

// receiverState is what attempts say about a receiver.
type receiverState int

const (
	unknown receiverState = iota // nothing in this term so far: what the leader before found still holds
	takes
	fails
	refused // its address is
)

// evidence is what was seen of a receiver in this term. Its zero value is the state before the first attempt.
type evidence struct {
	state    receiverState
	failures int    // in a row
	word     string // for the attempt that made it fail, or be refused
}

// after returns the evidence with one more attempt.
func (e evidence) after(a verification.Attempt) evidence {
	if a.Delivered {
		return evidence{state: takes}
	}
	e.failures++
	switch _, ours := refusals[a.Reason]; {
	case ours: // no deploy, and the next one will be too
		e.state, e.word = refused, a.Reason
	case e.failures >= failuresToTell && e.state != fails:
		e.state, e.word = fails, a.Reason
	}
	return e
}

// webhookHealthy judges the receiver. present is the condition as it stands, which is the memory of former leaders.
func webhookHealthy(s *settings.Settings, e evidence, present *metav1.Condition) metav1.Condition {
	if s.EventPolicy() == verification.EventsPaused {
		return no(verifyv1.ConditionWebhookHealthy, verifyv1.ReasonSigningSecretMissing,
			"the Secret of spec.webhook.secretRef cannot be used; events wait for it; see the condition SecretsReady")
	}
	remembered := present != nil && present.Status == metav1.ConditionFalse && slices.Contains(troubles, present.Reason)
	switch {
	case e.state == fails:
		if remembered && present.Reason == verifyv1.ReasonReceiverFailing {
			return *present // another word for the same trouble is no news
		}
		return no(verifyv1.ConditionWebhookHealthy, verifyv1.ReasonReceiverFailing,
			"the webhook's receiver fails ("+e.word+"); events wait and are sent again")
	case e.state == refused:
		return no(verifyv1.ConditionWebhookHealthy, verifyv1.ReasonAddressRefused, refusals[e.word])
	case e.state == unknown && remembered:
		return *present
	default:
		return yes(verifyv1.ConditionWebhookHealthy, verifyv1.ReasonNoFailures,
			"the webhook's receiver takes events, as far as is known")
	}
}
