package status

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// TestFindProblems_ofCodes are none of the messengers' own conditions.
func TestFindProblems_ofCodes(t *testing.T) {
	for _, conditionType := range []string{verifyv1.ConditionCodesReady, verifyv1.ConditionGatewayReady} {
		g, p := NewWithT(t), &verifyv1.VerificationProject{}
		p.Status.Conditions = []metav1.Condition{{Type: conditionType, Status: metav1.ConditionFalse, Reason: "Bad"}}
		g.Expect(findProblems(p, "")).To(ConsistOf(And(HaveField("Condition", conditionType), HaveField("Fatal", false))))
	}
}
