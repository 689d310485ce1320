package doctor

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

func TestParseCounts(t *testing.T) {
	g := NewWithT(t)
	counts, err := parseCounts(strings.NewReader(`# TYPE phoneproof_callback_requests_total counter
phoneproof_callback_requests_total{method="TELEGRAM",result="unauthorized"} 100
phoneproof_callback_requests_total{method="WHATSAPP",result="accepted"} 5
phoneproof_callback_requests_total{method="WHATSAPP",result="unauthorized"} 2
phoneproof_callback_requests_total{method="WHATSAPP",result="unsigned"} 40
# TYPE phoneproof_verifications_started_total counter
phoneproof_verifications_started_total{method="TELEGRAM"} 200
phoneproof_verifications_started_total{method="WHATSAPP"} 7
# TYPE phoneproof_gateway_balance_dollars gauge
phoneproof_gateway_balance_dollars 0.52
# TYPE phoneproof_gateway_balance_timestamp_seconds gauge
phoneproof_gateway_balance_timestamp_seconds 1.7951688e+09
`))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(counts).To(Equal(CallbackCounts{Accepted: 5, Refused: 2, Started: 7, Balance: 0.52, BalanceAt: time.Unix(1795168800, 0)}))
	_, err = parseCounts(strings.NewReader("<html>"))
	g.Expect(err).To(MatchError(ContainSubstring("parse metrics")))
}

// TestGatewayBalance is compared with what may be spent in a day, with its age.
func TestGatewayBalance(t *testing.T) {
	f := healthyFacts()
	f.Project.Spec.Telegram = &verifyv1.Telegram{Codes: &verifyv1.GatewayCodes{MaxPerDay: 600}}
	for balance, want := range map[float64]int{6: 0, 5.99: 1, 0: 1} {
		f.Callbacks.Value.Balance, f.Callbacks.Value.BalanceAt = balance, f.Now.Add(-90*time.Minute)
		NewWithT(t).Expect(evidenceOf(f, "GatewayBalanceLow")).To(HaveLen(want))
	}
	f.Callbacks.Value.Balance = 0.521
	NewWithT(t).Expect(evidenceOf(f, "GatewayBalanceLow")).To(ConsistOf(
		"the last answer, 1h30m0s ago, had a balance of 0.52 US dollars, and maxPerDay codes cost about 6.00"))
	f.Callbacks.Value.BalanceAt = time.Time{}
	NewWithT(t).Expect(evidenceOf(f, "GatewayBalanceLow")).To(BeEmpty(), "no pod knows one")
}
