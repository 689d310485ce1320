package callback

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers"
	"github.com/phoneproof/phoneproof/internal/messenger/telegram"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// gatewayInterval is how often the answers to codes are looked at.
const gatewayInterval = 30 * time.Second

// Gateway keeps the condition GatewayReady of a project. One runs for each term of a lease. It calls nothing: the Gateway has no question
// that is free and that shows whether it takes codes, so the answers to codes of this replica count.
type Gateway struct {
	Options

	gateway   *telegram.Gateway
	condition metav1.Condition
}

// NewGateway returns the watch of the answers that a gateway gets. Of the options it uses Settings, Changes, Set, Withdraw, Clock and Log.
func NewGateway(o Options, gateway *telegram.Gateway) *Gateway {
	return &Gateway{Options: o, gateway: gateway}
}

// Run keeps the condition current until ctx ends.
func (g *Gateway) Run(ctx context.Context) error {
	changes, cancel := g.Changes()
	defer cancel()
	return controllers.Run(ctx, controllers.Options{
		Reconcile: func(context.Context) (time.Duration, error) {
			g.updateCondition(g.Settings())
			return controllers.Jitter(gatewayInterval), nil
		},
		Changes: []<-chan struct{}{changes}, MinGap: minGap, Clock: g.Clock, Log: g.Log,
	})
}

func (g *Gateway) updateCondition(s *settings.Settings) {
	if s.Telegram == nil || s.Telegram.Codes == nil {
		g.condition = metav1.Condition{}
		if g.Withdraw != nil {
			g.Withdraw(verifyv1.ConditionGatewayReady)
		}
		return
	}
	says := judgeGateway(s.Telegram, g.gateway.State(s.Telegram.Codes))
	condition := metav1.Condition{
		Type: verifyv1.ConditionGatewayReady, Status: says.status, Reason: says.reason, Message: says.message, ObservedGeneration: s.Generation,
	}
	if g.condition.Status != condition.Status || g.condition.Reason != condition.Reason {
		g.Log.Info("condition changed", "condition", condition.Type, "status", says.status, "reason", says.reason, "message", says.message)
	}
	g.condition = condition
	if g.Set != nil {
		g.Set(condition)
	}
}

// judgeGateway returns the verdict on what the Gateway answered last.
func judgeGateway(account *settings.Telegram, state string) verdict {
	switch {
	case !account.Codes.Token.Usable(), !account.BotToken.Usable(): // the digits are made with the bot's token
		return falseVerdict(verifyv1.ReasonSecretsNotReady, "the secrets of the Gateway or of the bot cannot be read; see SecretsReady")
	case state == telegram.GatewayAccepts:
		return trueVerdict(verifyv1.ReasonGatewayTakesCodes, "Telegram's Gateway took the last code")
	case state == telegram.GatewayToken:
		return falseVerdict(verifyv1.ReasonCredentialsRejected, "Telegram's Gateway refuses the token; "+
			"put the one that gateway.telegram.org shows into the Secret of spec.telegram.codes.gatewayTokenSecretRef")
	case state == telegram.GatewayBalance:
		return falseVerdict(verifyv1.ReasonBalanceEmpty, "the balance at Telegram's Gateway does not pay for a code; add funds at gateway.telegram.org")
	case state == telegram.GatewaySender:
		return falseVerdict(verifyv1.ReasonSenderRejected, "Telegram's Gateway refuses spec.telegram.codes.senderUsername; "+
			"name a verified channel of the Gateway account's owner, or remove it")
	default:
		return verdict{metav1.ConditionUnknown, verifyv1.ReasonGatewayUnchecked, "no code was sent yet with the present token and sender"}
	}
}
