package rotate

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

func TestDescribeWait(t *testing.T) {
	condition := func(name string, status metav1.ConditionStatus, reason string, generation int64) metav1.Condition {
		return metav1.Condition{Type: name, Status: status, Reason: reason, Message: "because", ObservedGeneration: generation}
	}
	read := condition("SecretsReady", "True", "SecretsRead", 3)
	for name, test := range map[string]struct {
		want       string
		observed   int64
		conditions []metav1.Condition
	}{
		"rolled out":                         {"", 3, []metav1.Condition{condition("Ready", "True", "Ready", 3), read}},
		"not Ready for another reason":       {"", 3, []metav1.Condition{condition("Ready", "False", "CallbackTaken", 3), read}},
		"a pod beyond what is declared":      {"", 3, []metav1.Condition{condition("Ready", "True", "PodsRefused", 3), read}},
		"the webhook's secret":               {"", 3, []metav1.Condition{condition("WebhookHealthy", "Unknown", "AwaitingRollout", 3), read}},
		"not observed":                       {"no pod has reported on this spec yet", 2, []metav1.Condition{read}},
		"not reported":                       {"no pod has reported on this spec yet", 3, []metav1.Condition{condition("SecretsReady", "True", "SecretsRead", 2)}},
		"never reported":                     {"no pod has reported on this spec yet", 3, nil},
		"the leader is a former pod":         {"AwaitingRollout: because", 3, []metav1.Condition{condition("SecretsReady", "Unknown", "AwaitingRollout", 3)}},
		"the leader is a new pod":            {"Progressing: because", 3, []metav1.Condition{read, condition("Reconciling", "True", "Progressing", 3)}},
		"an upgrade of the operator waits":   {"", 3, []metav1.Condition{read, condition("Reconciling", "True", "RolloutQueued", 3)}},
		"new pods that do not start":         {"RolloutStuck: because", 3, []metav1.Condition{read, condition("Stalled", "True", "RolloutStuck", 3)}},
		"former pods beside refused ones":    {"PodsRefused: because", 3, []metav1.Condition{condition("Ready", "False", "PodsRefused", 3), read}},
		"a Secret that no pod would come by": {"SecretMissing: because", 3, []metav1.Condition{condition("SecretsReady", "False", "SecretMissing", 3)}},
	} {
		p := &verifyv1.VerificationProject{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
		p.Status.ObservedGeneration, p.Status.Conditions = test.observed, test.conditions
		g := NewWithT(t)
		g.Expect(describeWait(p)).To(Equal(test.want), name)
		p.Spec.Suspend = new(true)
		g.Expect(describeWait(p)).To(BeEmpty(), "no pod runs")
	}
}
