package callback

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/messenger/telegram"
	"github.com/phoneproof/phoneproof/internal/redact"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// gatewayAnswer is what a played Gateway answers.
type gatewayAnswer string

func (a *gatewayAnswer) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(string(*a))), Request: r}, nil
}

// newWatchedGateway returns a gateway that answers so, and stores its settings.
func newWatchedGateway(g *WithT, current *atomic.Pointer[settings.Settings], answer *gatewayAnswer) *telegram.Gateway {
	client, err := telegram.NewGatewayClient(telegram.ClientOptions{Transport: answer})
	g.Expect(err).NotTo(HaveOccurred())
	current.Store(&settings.Settings{Generation: 7, Telegram: &settings.Telegram{
		BotToken: settings.NewSecret([]byte("1:bot")), Codes: &settings.GatewayCodes{Token: settings.NewSecret([]byte("token"))},
	}})
	gateway, err := telegram.NewGateway(telegram.GatewayOptions{
		Settings: current.Load, Client: client, Clock: clock.RealClock{}, Log: logr.Discard(), Registerer: prometheus.NewRegistry(),
	})
	g.Expect(err).NotTo(HaveOccurred())
	return gateway
}

// TestGateway_keepsTheConditionOfAFormerTerm: a replica that takes over has had no answer yet.
func TestGateway_keepsTheConditionOfAFormerTerm(t *testing.T) {
	for reason, row := range map[string]struct {
		generation int64
		isKept     bool
	}{
		verifyv1.ReasonBalanceEmpty: {7, true}, verifyv1.ReasonGatewayTakesCodes: {7, true}, verifyv1.ReasonSenderRejected: {6, false},
		verifyv1.ReasonSecretsNotReady: {7, false},
	} {
		g, set := NewWithT(t), false
		var current atomic.Pointer[settings.Settings]
		project := &verifyv1.VerificationProject{}
		project.Status.Conditions = []metav1.Condition{{Type: verifyv1.ConditionGatewayReady, Reason: reason, ObservedGeneration: row.generation}}
		watch := NewGateway(Options{
			Projects: &projects{project: project}, Set: func(metav1.Condition) { set = true },
		}, newWatchedGateway(g, &current, new(gatewayAnswer)))
		watch.updateCondition(current.Load())
		g.Expect(set).To(Equal(!row.isKept), reason)
		other := *current.Load().Telegram
		other.Codes = &settings.GatewayCodes{Token: settings.NewSecret([]byte("another"))}
		watch.updateCondition(&settings.Settings{Generation: 7, Telegram: &other})
		g.Expect(set).To(BeTrue(), "another token, by its Secret alone")
	}
}

// TestGateway_condition follows the answers to codes, and starts anew with another token.
func TestGateway_condition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, answer := NewWithT(t), new(gatewayAnswer)
		var current atomic.Pointer[settings.Settings]
		gateway := newWatchedGateway(g, &current, answer)
		var changes verification.Notifier
		var last atomic.Pointer[metav1.Condition]
		watch := NewGateway(Options{
			Settings: current.Load,
			Changes:  func() (<-chan struct{}, func()) { return changes.Subscribe("") },
			Set:      func(condition metav1.Condition) { last.Store(&condition) },
			Withdraw: func(conditionType string) {
				last.Store(&metav1.Condition{Type: conditionType, Reason: "withdrawn"})
			},
		}, gateway)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- watch.Run(ctx) }()
		expect := func(status metav1.ConditionStatus, reason string) {
			t.Helper()
			<-time.After(time.Minute)
			synctest.Wait()
			shown := last.Load()
			g.Expect([]any{shown.Type, shown.Status, shown.Reason}).To(Equal([]any{verifyv1.ConditionGatewayReady, status, reason}))
		}
		expect(metav1.ConditionUnknown, verifyv1.ReasonGatewayUnchecked)
		for _, row := range []struct {
			answer gatewayAnswer
			status metav1.ConditionStatus
			reason string
		}{
			{`{"ok":false,"error":"ACCESS_TOKEN_INVALID"}`, metav1.ConditionFalse, verifyv1.ReasonCredentialsRejected},
			{`{"ok":false,"error":"BALANCE_NOT_ENOUGH"}`, metav1.ConditionFalse, verifyv1.ReasonBalanceEmpty},
			{`{"ok":false,"error":"PHONE_NUMBER_NOT_FOUND"}`, metav1.ConditionFalse, verifyv1.ReasonBalanceEmpty},
			{`{"ok":true,"result":{"request_id":"1"}}`, metav1.ConditionTrue, verifyv1.ReasonGatewayTakesCodes},
			{`{"ok":false,"error":"SENDER_NOT_OWNED"}`, metav1.ConditionFalse, verifyv1.ReasonSenderRejected},
		} {
			*answer = row.answer
			r := &verification.Request{ID: "vr1", Method: verification.Telegram, ExpiresAt: time.Now().Add(time.Minute)}
			gateway.SendCode(t.Context(), current.Load(), r, redact.New("12345678"))
			expect(row.status, row.reason)
			g.Expect(last.Load().ObservedGeneration).To(BeEquivalentTo(7))
		}
		change := func(codes *settings.GatewayCodes, bot string) {
			current.Store(&settings.Settings{Telegram: &settings.Telegram{BotToken: settings.NewSecret([]byte(bot)), Codes: codes}})
			changes.Notify("")
		}
		change(&settings.GatewayCodes{Token: settings.NewSecret([]byte("another"))}, "1:bot")
		expect(metav1.ConditionUnknown, verifyv1.ReasonGatewayUnchecked)
		change(&settings.GatewayCodes{}, "1:bot")
		expect(metav1.ConditionFalse, verifyv1.ReasonSecretsNotReady)
		change(&settings.GatewayCodes{Token: settings.NewSecret([]byte("token"))}, "")
		expect(metav1.ConditionFalse, verifyv1.ReasonSecretsNotReady)
		change(nil, "1:bot")
		expect("", "withdrawn")
		stop()
		g.Expect(<-ended).To(Succeed())
	})
}
