package callback

import (
	"bytes"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
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
	began     *settings.GatewayCodes // the account at the begin of the term
}

// NewGateway returns the watch of the answers that a gateway gets. Of the options it does not use Remember.
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
		g.withdrawCondition(verifyv1.ConditionGatewayReady)
		return
	}
	codes := s.Telegram.Codes
	if g.began == nil {
		g.began = codes
	}
	says := judgeGateway(s.Telegram, g.gateway.State(codes))
	isSame := codes.SenderUsername == g.began.SenderUsername && bytes.Equal(codes.Token.Current(), g.began.Token.Current())
	if says.reason == verifyv1.ReasonGatewayUnchecked && g.condition.Type == "" && isSame && g.isKnown(s) {
		return
	}
	g.setCondition(&g.condition, verifyv1.ConditionGatewayReady, s, says)
}

// isKnown reports whether the status already has an answer of the Gateway with these settings, from a former term.
func (g *Gateway) isKnown(s *settings.Settings) bool {
	project := g.currentProject()
	if project == nil {
		return false
	}
	present := meta.FindStatusCondition(project.Status.Conditions, verifyv1.ConditionGatewayReady)
	return present != nil && present.ObservedGeneration == s.Generation && present.Reason != verifyv1.ReasonSecretsNotReady
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
