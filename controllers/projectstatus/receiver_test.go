package projectstatus

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

var (
	delivered   = verification.Attempt{Delivered: true}
	failed      = verification.Attempt{Reason: "http_500"}
	timedOut    = verification.Attempt{Reason: "timeout"}
	blocked     = verification.Attempt{Reason: "blocked_address"}
	blockedPort = verification.Attempt{Reason: "blocked_port"}
	plainHTTP   = verification.Attempt{Reason: "plain_http"}
)

func evidenceAfter(attempts ...verification.Attempt) evidence {
	var e evidence
	for _, a := range attempts {
		e = e.withAttempt(a)
	}
	return e
}

func TestEvidence(t *testing.T) {
	for name, tc := range map[string]struct {
		attempts []verification.Attempt
		state    receiverState
		word     string
	}{
		"nothing yet":                {nil, receiverUnknown, ""},
		"a delivery":                 {[]verification.Attempt{delivered}, receiverHealthy, ""},
		"a few failures":             {[]verification.Attempt{failed, failed}, receiverUnknown, ""},
		"enough of them":             {[]verification.Attempt{failed, failed, timedOut}, receiverFailing, "timeout"},
		"more than enough":           {[]verification.Attempt{failed, failed, failed, timedOut, timedOut}, receiverFailing, "http_500"},
		"with a delivery between":    {[]verification.Attempt{failed, failed, delivered, failed, failed}, receiverHealthy, ""},
		"healthy again":              {[]verification.Attempt{failed, failed, failed, delivered}, receiverHealthy, ""},
		"failing again":              {[]verification.Attempt{failed, failed, failed, delivered, timedOut, timedOut, timedOut}, receiverFailing, "timeout"},
		"one refused address":        {[]verification.Attempt{blocked}, receiverRefused, "blocked_address"},
		"a failure does not forgive": {[]verification.Attempt{blocked, failed}, receiverRefused, "blocked_address"},
		"refused, and then it fails": {[]verification.Attempt{blocked, failed, failed}, receiverFailing, "http_500"},
		"failing, and then refused":  {[]verification.Attempt{failed, failed, failed, blocked}, receiverRefused, "blocked_address"},
		"refused, and then it works": {[]verification.Attempt{blocked, delivered}, receiverHealthy, ""},
		"a forbidden port":           {[]verification.Attempt{blockedPort}, receiverRefused, "blocked_port"},
		"plain http":                 {[]verification.Attempt{plainHTTP}, receiverRefused, "plain_http"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			e := evidenceAfter(tc.attempts...)
			g.Expect(e.state).To(Equal(tc.state))
			g.Expect(e.cause).To(Equal(tc.word))
		})
	}
}

// A receiver that has the secret from its environment signs with the newline, too.
func TestWebhookHealthy_namesANewlineOfTheSecret(t *testing.T) {
	hook := &settings.Settings{Webhook: &settings.Webhook{SecretNewline: true}}
	refused := verification.Attempt{Reason: "http_401"}
	g := NewWithT(t)
	g.Expect(webhookHealthy(hook, evidenceAfter(refused, refused, refused), nil).Message).To(HaveSuffix(
		"(http_401); events wait and are sent again; the newline at the end of the secret is not part of the key that signs: a receiver must ignore it, too"))
	for _, other := range []evidence{evidenceAfter(delivered), evidenceAfter(failed, failed, failed), evidenceAfter(timedOut, timedOut, timedOut)} {
		g.Expect(webhookHealthy(hook, other, nil).Message).NotTo(ContainSubstring("newline"), other.cause)
	}
}

func TestWebhookHealthy(t *testing.T) {
	present := func(status metav1.ConditionStatus, reason string) *metav1.Condition {
		return new(condition(verifyv1.ConditionWebhookHealthy, status, reason))
	}
	healthy, failing := present(metav1.ConditionTrue, verifyv1.ReasonNoFailures), present(metav1.ConditionFalse, verifyv1.ReasonReceiverFailing)
	unsigned := present(metav1.ConditionFalse, verifyv1.ReasonSigningSecretMissing)
	notAllowed := present(metav1.ConditionFalse, verifyv1.ReasonAddressRefused)
	foreign := present(metav1.ConditionFalse, "Foreign")
	const well, bad = metav1.ConditionTrue, metav1.ConditionFalse
	for name, tc := range map[string]struct {
		unsigned bool
		evidence evidence
		present  *metav1.Condition
		status   metav1.ConditionStatus
		reason   string
		message  string
	}{
		"a new project":                     {false, evidenceAfter(), nil, well, verifyv1.ReasonNoFailures, "the webhook's receiver takes events, as far as is known"},
		"a new leader of a healthy one":     {false, evidenceAfter(failed, failed), healthy, well, verifyv1.ReasonNoFailures, "the webhook's receiver takes events, as far as is known"},
		"it starts to fail":                 {false, evidenceAfter(failed, failed, failed), healthy, bad, verifyv1.ReasonReceiverFailing, "the webhook's receiver fails (http_500); events wait and are sent again"},
		"another cause":                     {false, evidenceAfter(timedOut, timedOut, timedOut), failing, bad, verifyv1.ReasonReceiverFailing, "as it was"},
		"a new leader of a failing one":     {false, evidenceAfter(), failing, bad, verifyv1.ReasonReceiverFailing, "as it was"},
		"a new leader that sees it fail":    {false, evidenceAfter(failed), failing, bad, verifyv1.ReasonReceiverFailing, "as it was"},
		"a new leader that sees it recover": {false, evidenceAfter(delivered), failing, well, verifyv1.ReasonNoFailures, "the webhook's receiver takes events, as far as is known"},
		"an address that is refused":        {false, evidenceAfter(blocked), healthy, bad, verifyv1.ReasonAddressRefused, "the host of spec.webhook.url does not exist, or leads to an address that the cluster's administrator has not allowed; see --webhook-allow"},
		"a forbidden port":                  {false, evidenceAfter(blockedPort), healthy, bad, verifyv1.ReasonAddressRefused, "spec.webhook.url has a port of the cluster's own (etcd, control plane, kubelet), which no webhook may use; use another one"},
		"plain http":                        {false, evidenceAfter(plainHTTP), healthy, bad, verifyv1.ReasonAddressRefused, "spec.webhook.url is plain http to a public address; use https"},
		"a new leader of a refused one":     {false, evidenceAfter(), notAllowed, bad, verifyv1.ReasonAddressRefused, "as it was"},
		"no secret to sign with":            {true, evidenceAfter(delivered), healthy, bad, verifyv1.ReasonSigningSecretMissing, "the Secret of spec.webhook.secretRef cannot be used; events wait for it; see the condition SecretsReady"},
		"a rotation":                        {true, evidenceAfter(delivered), healthy, metav1.ConditionUnknown, verifyv1.ReasonAwaitingRollout, "the Secret of spec.webhook.secretRef is not mounted into this pod yet; events wait for a pod that has it"},
		"a rotation while it fails":         {true, evidenceAfter(), failing, bad, verifyv1.ReasonReceiverFailing, "as it was"},
		"the secret is back":                {false, evidenceAfter(), unsigned, well, verifyv1.ReasonNoFailures, "the webhook's receiver takes events, as far as is known"},
		"the secret is back, and it fails":  {false, evidenceAfter(failed, failed, failed), unsigned, bad, verifyv1.ReasonReceiverFailing, "the webhook's receiver fails (http_500); events wait and are sent again"},
		"a foreign condition is ignored":    {false, evidenceAfter(), foreign, well, verifyv1.ReasonNoFailures, "the webhook's receiver takes events, as far as is known"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := &settings.Settings{Webhook: &settings.Webhook{Signed: tc.unsigned}}
			if strings.HasPrefix(name, "a rotation") {
				s.Problems = []settings.Problem{{Field: "spec.webhook.secretRef", Reason: settings.ReasonNotMounted}}
			}
			got := webhookHealthy(s, tc.evidence, tc.present)
			g.Expect(got.Type).To(Equal(verifyv1.ConditionWebhookHealthy))
			g.Expect([]any{got.Status, got.Reason, got.Message}).To(Equal([]any{tc.status, tc.reason, tc.message}))
		})
	}
}
