package projectstatus

import (
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

func after(attempts ...verification.Attempt) evidence {
	var e evidence
	for _, a := range attempts {
		e = e.after(a)
	}
	return e
}

func TestEvidence(t *testing.T) {
	for name, tc := range map[string]struct {
		attempts []verification.Attempt
		state    receiverState
		word     string
	}{
		"nothing yet":                  {nil, unknown, ""},
		"a delivery":                   {[]verification.Attempt{delivered}, takes, ""},
		"a few failures":               {[]verification.Attempt{failed, failed}, unknown, ""},
		"enough of them":               {[]verification.Attempt{failed, failed, timedOut}, fails, "timeout"},
		"more than enough":             {[]verification.Attempt{failed, failed, failed, timedOut, timedOut}, fails, "http_500"},
		"with a delivery between":      {[]verification.Attempt{failed, failed, delivered, failed, failed}, takes, ""},
		"well again":                   {[]verification.Attempt{failed, failed, failed, delivered}, takes, ""},
		"failing again":                {[]verification.Attempt{failed, failed, failed, delivered, timedOut, timedOut, timedOut}, fails, "timeout"},
		"one refused address":          {[]verification.Attempt{blocked}, refused, "blocked_address"},
		"a failure does not forgive":   {[]verification.Attempt{blocked, failed}, refused, "blocked_address"},
		"refused, and then it fails":   {[]verification.Attempt{blocked, failed, failed}, fails, "http_500"},
		"failing, and then refused":    {[]verification.Attempt{failed, failed, failed, blocked}, refused, "blocked_address"},
		"refused, and then it is well": {[]verification.Attempt{blocked, delivered}, takes, ""},
		"a port that nobody may use":   {[]verification.Attempt{blockedPort}, refused, "blocked_port"},
		"http in the open":             {[]verification.Attempt{plainHTTP}, refused, "plain_http"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			e := after(tc.attempts...)
			g.Expect(e.state).To(Equal(tc.state))
			g.Expect(e.word).To(Equal(tc.word))
		})
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
		"a new project":                       {false, after(), nil, well, verifyv1.ReasonNoFailures, "the webhook's receiver takes events, as far as is known"},
		"a new leader of a healthy one":       {false, after(failed, failed), healthy, well, verifyv1.ReasonNoFailures, "the webhook's receiver takes events, as far as is known"},
		"it starts to fail":                   {false, after(failed, failed, failed), healthy, bad, verifyv1.ReasonReceiverFailing, "the webhook's receiver fails (http_500); events wait and are sent again"},
		"another word for it":                 {false, after(timedOut, timedOut, timedOut), failing, bad, verifyv1.ReasonReceiverFailing, "as it was"},
		"a new leader of a failing one":       {false, after(), failing, bad, verifyv1.ReasonReceiverFailing, "as it was"},
		"that sees it fail as well":           {false, after(failed), failing, bad, verifyv1.ReasonReceiverFailing, "as it was"},
		"that sees it recover":                {false, after(delivered), failing, well, verifyv1.ReasonNoFailures, "the webhook's receiver takes events, as far as is known"},
		"an address that is refused":          {false, after(blocked), healthy, bad, verifyv1.ReasonAddressRefused, "the host of spec.webhook.url does not exist, or leads to an address that the cluster's administrator has not allowed; see --webhook-allow"},
		"a port that nobody may use":          {false, after(blockedPort), healthy, bad, verifyv1.ReasonAddressRefused, "spec.webhook.url has a port of the cluster's own (etcd, control plane, kubelet), which no webhook may use; use another one"},
		"http in the open":                    {false, after(plainHTTP), healthy, bad, verifyv1.ReasonAddressRefused, "spec.webhook.url is plain http to a public address; use https"},
		"a new leader of a refused one":       {false, after(), notAllowed, bad, verifyv1.ReasonAddressRefused, "as it was"},
		"no secret to sign with":              {true, after(delivered), healthy, bad, verifyv1.ReasonSigningSecretMissing, "the Secret of spec.webhook.secretRef cannot be used; events wait for it; see the condition SecretsReady"},
		"the secret is back":                  {false, after(), unsigned, well, verifyv1.ReasonNoFailures, "the webhook's receiver takes events, as far as is known"},
		"the secret is back, and it fails":    {false, after(failed, failed, failed), unsigned, bad, verifyv1.ReasonReceiverFailing, "the webhook's receiver fails (http_500); events wait and are sent again"},
		"what somebody else wrote is no news": {false, after(), foreign, well, verifyv1.ReasonNoFailures, "the webhook's receiver takes events, as far as is known"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := webhookHealthy(&settings.Settings{Webhook: &settings.Webhook{Signed: tc.unsigned}}, tc.evidence, tc.present)
			g.Expect(got.Type).To(Equal(verifyv1.ConditionWebhookHealthy))
			g.Expect([]any{got.Status, got.Reason, got.Message}).To(Equal([]any{tc.status, tc.reason, tc.message}))
		})
	}
}
