package callback

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	messengers "github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/messenger/telegram"
	"github.com/phoneproof/phoneproof/internal/panics"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// Telegram is the controller of the webhook at Telegram, and the poller that is used instead if the project wants no webhook. One
// runs for each term of a lease.
type Telegram struct {
	*Controller

	poller *telegram.Poller
}

// NewTelegram returns the controller of a bot. It calls Telegram with client, and passes polled updates to bot.
func NewTelegram(o Options, client *telegram.Client, bot *telegram.Channel) *Telegram {
	api := newBotAPI(client, o.Clock)
	return &Telegram{
		Controller: newController(o, api),
		poller: bot.NewPoller(telegram.PollerOptions{
			Permitted: api.polling.isAllowed, Wake: api.polling.wake, Report: api.polling.recordState,
		}),
	}
}

// Run checks and polls until ctx ends.
func (t *Telegram) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, part := range []func(context.Context) error{t.Controller.Run, t.poller.Start} {
		group.Go(func() error { return panics.ToError(func() error { return part(ctx) }) })
	}
	return group.Wait()
}

const tokenRefused = "Telegram refuses the bot's token; " +
	"put the one that BotFather gives into the Secret of spec.telegram.botTokenSecretRef"

// botAPI is Telegram's Bot API.
type botAPI struct {
	client  *telegram.Client
	clock   clock.PassiveClock
	polling *polling
}

func newBotAPI(client *telegram.Client, c clock.PassiveClock) *botAPI {
	if c == nil {
		c = clock.RealClock{}
	}
	return &botAPI{client: client, clock: c, polling: newPolling(c)}
}

func (*botAPI) conditionType() string { return verifyv1.ConditionTelegramReady }

func (*botAPI) newPlan(s *settings.Settings) plan {
	a := s.Telegram
	if a == nil {
		return plan{absent: true}
	}
	p := plan{
		platform: "Telegram", field: "spec.telegram", account: strings.ToLower(a.BotUsername), takeOver: a.TakeOver,
		secretHidden: true, ownCallback: s.BaseURL + telegram.HookPath,
	}
	if !a.BotToken.Usable() {
		p.verdict = falseVerdict(verifyv1.ReasonSecretsNotReady, "the bot's token cannot be read; see SecretsReady")
		return p
	}
	p.secret = sha256.Sum256([]byte(telegram.WebhookSecret(a.BotToken.Current(), s.Project)))
	if !a.Polling {
		p.callback = p.ownCallback
	}
	return p
}

func (*botAPI) storedCallback(status *verifyv1.VerificationProjectStatus) string {
	return callbackOf(status.Telegram)
}

func (b *botAPI) readState(ctx context.Context, s *settings.Settings) (platformState, error) {
	bot, err := b.client.GetMe(ctx, s.Telegram)
	if err != nil {
		return platformState{}, fmt.Errorf("read bot: %w", err)
	}
	if !strings.EqualFold(bot.Username, s.Telegram.BotUsername) {
		return platformState{mismatch: "the token is another bot's than spec.telegram.botUsername names; correct one of the two"}, nil
	}
	info, err := b.client.GetWebhookInfo(ctx, s.Telegram)
	if err != nil {
		return platformState{}, fmt.Errorf("read callback: %w", err)
	}
	now := b.clock.Now()
	return platformState{
		callback: info.URL, drifted: info.URL != "" && (!info.OnlyMessages() || hasForeignSecret(info, now)), failing: deliveryProblem(info, now),
	}, nil
}

func (b *botAPI) registerCallback(ctx context.Context, s *settings.Settings, callback string) error {
	secret := telegram.WebhookSecret(s.Telegram.BotToken.Current(), s.Project)
	return b.client.SetWebhook(ctx, s.Telegram, callback, secret)
}

// readSubscription returns nothing: Telegram has no subscriptions.
func (b *botAPI) readSubscription(context.Context, *settings.Settings) subscription {
	return subscription{}
}

// subscribeApp is never called.
func (b *botAPI) subscribeApp(context.Context, *settings.Settings) error { return nil }

func (b *botAPI) removeCallback(ctx context.Context, s *settings.Settings) error {
	return b.client.DeleteWebhook(ctx, s.Telegram)
}

func (*botAPI) explainError(err error, doing step) callFailure {
	failure, _ := errors.AsType[*telegram.Error](err)
	switch {
	case errors.Is(err, messengers.ErrNoSimulator):
		return callFailure{reason: verifyv1.ReasonCredentialsRejected, message: noSimulator}
	case errors.Is(err, telegram.ErrCredentials), errors.Is(err, telegram.ErrNoToken):
		return callFailure{reason: verifyv1.ReasonCredentialsRejected, message: tokenRefused}
	case errors.Is(err, telegram.ErrRateLimited):
		return callFailure{verifyv1.ReasonPlatformFailing, "Telegram asks to wait: there were too many calls", true}
	case errors.Is(err, telegram.ErrRefused) && doing == stepRegister:
		return callFailure{reason: verifyv1.ReasonCallbackUnreachable, message: describeUndeliverable(failure.Description)}
	case errors.Is(err, telegram.ErrRefused):
		return callFailure{verifyv1.ReasonPlatformFailing, describeRefusal(failure), true}
	case errors.Is(err, telegram.ErrConflict):
		return callFailure{verifyv1.ReasonCallbackTaken, pollConflict, true}
	case failure != nil && failure.PlatformFailed():
		return callFailure{verifyv1.ReasonPlatformFailing, platformFailed("Telegram's Bot API", failure.Code, failure.Foreign), true}
	case failure != nil && failure.Code != 0:
		return callFailure{
			verifyv1.ReasonPlatformUnreachable,
			"something else answers in place of Telegram's Bot API; look at the proxies between", true,
		}
	default:
		return callFailure{
			verifyv1.ReasonPlatformUnreachable,
			"Telegram's Bot API does not answer; wait, or look at what the pods may reach", true,
		}
	}
}

// describeRefusal returns the message for a call that Telegram refuses: the code, and only known parts of the description.
func describeRefusal(failure *telegram.Error) string {
	message := fmt.Sprintf("Telegram's Bot API refuses the call with %d", failure.Code)
	if strings.Contains(strings.ToLower(failure.Description), "logged out") {
		return message + ": the bot was logged out of it (logOut), which lasts ten minutes or longer; " +
			"wait, or look at the Bot API server that the bot belongs to"
	}
	return message + "; wait, or look at the bot with BotFather"
}

func (*botAPI) requestedWait(err error) time.Duration {
	if failure, ok := errors.AsType[*telegram.Error](err); ok {
		return failure.RetryAfter
	}
	return 0
}

func (b *botAPI) pollFor(s *settings.Settings) (verdict, time.Duration) {
	if s == nil {
		b.polling.allow(nil)
		return verdict{}, 0
	}
	b.polling.allow(s.Telegram)
	return b.polling.currentVerdict()
}

func (b *botAPI) pollChanges() <-chan struct{} { return b.polling.changes }

func (b *botAPI) pollVersion() int { return b.polling.currentVersion() }
