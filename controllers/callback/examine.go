package callback

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/messenger/telegram"
	"github.com/phoneproof/phoneproof/internal/messenger/whatsapp"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// ExamineWhatsApp returns the condition that the present state at Meta gives a project, and changes nothing there. It is empty for
// a project without WhatsApp.
func ExamineWhatsApp(
	ctx context.Context, client *whatsapp.Client, s *settings.Settings, status *verifyv1.VerificationProjectStatus,
) metav1.Condition {
	meta := &graph{client: client}
	return examine(ctx, meta, s, status, meta.subscriptionRemedy)
}

// ExamineTelegram returns the condition that the present state at Telegram gives a project, and changes nothing there. Whether
// another program fetches the bot's updates is not found out: a call that asks for them would take some.
func ExamineTelegram(
	ctx context.Context, client *telegram.Client, s *settings.Settings, status *verifyv1.VerificationProjectStatus,
) metav1.Condition {
	return examine(ctx, newBotAPI(client, nil), s, status, func() string { return "" })
}

func examine(
	ctx context.Context, m messenger, s *settings.Settings, status *verifyv1.VerificationProjectStatus, remedy func() string,
) metav1.Condition {
	p := m.newPlan(s)
	switch {
	case p.absent:
		return metav1.Condition{}
	case p.verdict != verdict{}:
		return p.verdict.toCondition(m.conditionType(), s)
	}
	found, err := m.readState(ctx, s)
	if err != nil {
		return m.explainError(err, stepNone).toVerdict().toCondition(m.conditionType(), s)
	}
	known := memory{secret: p.secret} // the platform's secrets cannot be compared from outside
	if callback := m.storedCallback(status); callback != "" {
		known.callbacks = []string{callback}
	}
	do, says := decideStep(p, found, known)
	if p.byHand && found.mismatch != "" {
		says = falseVerdict(verifyv1.ReasonAccountMismatch, found.mismatch)
	}
	if says.status == metav1.ConditionTrue {
		do, says = decideSubscription(p, m.readSubscription(ctx, s), do, says)
	}
	switch {
	case do == stepSubscribe:
		says = falseVerdict(verifyv1.ReasonNotSubscribed, notSubscribed+"run: "+remedy())
	case do != stepNone && says.status != metav1.ConditionFalse:
		says = verdict{metav1.ConditionUnknown, verifyv1.ReasonRegistering, "the callback at " + p.platform +
			" is not the one that the project wants; a pod registers it"}
	case says == verdict{}:
		says = trueVerdict(verifyv1.ReasonPolling, "the token is the bot's, and no webhook keeps its messages from being fetched")
	}
	return says.toCondition(m.conditionType(), s)
}
