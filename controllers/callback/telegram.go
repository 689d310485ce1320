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
	"github.com/phoneproof/phoneproof/internal/messenger/telegram"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// Telegram is the controller of the webhook at Telegram, and the poller that fetches the updates where there is none to be.
// Make a new one for each term of a lease.
type Telegram struct {
	*Controller

	poller *telegram.Poller
}

// NewTelegram returns the controller of a bot, with calls by client and the updates that are fetched going to bot.
func NewTelegram(o Options, client *telegram.Client, bot *telegram.Channel) *Telegram {
	api := newBotAPI(client, o.Clock)
	return &Telegram{
		Controller: newController(o, api),
		poller: bot.NewPoller(telegram.PollerOptions{
			Permitted: api.polling.permitted, Wake: api.polling.wake, Report: api.polling.report,
		}),
	}
}

// Run looks and polls until ctx ends.
func (t *Telegram) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return t.Controller.Run(ctx) })
	group.Go(func() error { return t.poller.Start(ctx) })
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

func (*botAPI) condition() string { return verifyv1.ConditionTelegramReady }

func (*botAPI) plan(s *settings.Settings) plan {
	a := s.Telegram
	if a == nil {
		return plan{absent: true}
	}
	p := plan{
		platform: "Telegram", field: "spec.telegram", account: strings.ToLower(a.BotUsername), takeOver: a.TakeOver,
		unseen: true, home: s.BaseURL + telegram.HookPath,
	}
	if !a.BotToken.Usable() {
		p.said = bad(verifyv1.ReasonSecretsNotReady, "the bot's token cannot be read; see SecretsReady")
		return p
	}
	p.secret = sha256.Sum256([]byte(telegram.WebhookSecret(a.BotToken.Current(), s.Project)))
	if !a.Polling {
		p.callback = p.home
	}
	return p
}

func (*botAPI) remembered(status *verifyv1.VerificationProjectStatus) string {
	return callbackOf(status.Telegram)
}

func (b *botAPI) observe(ctx context.Context, s *settings.Settings) (seen, error) {
	bot, err := b.client.GetMe(ctx, s.Telegram)
	if err != nil {
		return seen{}, err
	}
	if !strings.EqualFold(bot.Username, s.Telegram.BotUsername) {
		return seen{mismatch: "the token is another bot's than spec.telegram.botUsername names; correct one of the two"}, nil
	}
	info, err := b.client.GetWebhookInfo(ctx, s.Telegram)
	if err != nil {
		return seen{}, err
	}
	now := b.clock.Now()
	return seen{
		callback: info.URL, drifted: info.URL != "" && (!info.OnlyMessages() || strange(info, now)), failing: failing(info, now),
	}, nil
}

func (b *botAPI) register(ctx context.Context, s *settings.Settings, callback string) error {
	secret := telegram.WebhookSecret(s.Telegram.BotToken.Current(), s.Project)
	return b.client.SetWebhook(ctx, s.Telegram, callback, secret)
}

func (b *botAPI) remove(ctx context.Context, s *settings.Settings) error {
	return b.client.DeleteWebhook(ctx, s.Telegram)
}

func (*botAPI) explain(err error, doing step) trouble {
	failure, _ := errors.AsType[*telegram.Error](err)
	switch {
	case errors.Is(err, telegram.ErrNoSimulator):
		return trouble{reason: verifyv1.ReasonCredentialsRejected, message: noSimulator}
	case errors.Is(err, telegram.ErrCredentials), errors.Is(err, telegram.ErrNoToken):
		return trouble{reason: verifyv1.ReasonCredentialsRejected, message: tokenRefused}
	case errors.Is(err, telegram.ErrRateLimited):
		return trouble{verifyv1.ReasonPlatformFailing, "Telegram asks to wait: there were too many calls", true}
	case errors.Is(err, telegram.ErrRefused) && doing == stepRegister:
		return trouble{reason: verifyv1.ReasonCallbackUnreachable, message: undeliverable(failure.Description)}
	case errors.Is(err, telegram.ErrRefused):
		return trouble{verifyv1.ReasonPlatformFailing, refusal(failure), true}
	case errors.Is(err, telegram.ErrConflict):
		return trouble{verifyv1.ReasonCallbackTaken, pollConflict, true}
	case failure != nil && failure.PlatformFailed():
		return trouble{verifyv1.ReasonPlatformFailing, platformFailed("Telegram's Bot API", failure.Code, failure.Foreign), true}
	case failure != nil && failure.Code != 0:
		return trouble{verifyv1.ReasonPlatformUnreachable, "something else answers in place of Telegram's Bot API; look at the proxies between", true}
	default:
		return trouble{verifyv1.ReasonPlatformUnreachable, "Telegram's Bot API does not answer; wait, or look at what the pods may reach", true}
	}
}

// refusal is the message for a call that Telegram refuses: its code, and of its description only what is known.
func refusal(failure *telegram.Error) string {
	message := fmt.Sprintf("Telegram's Bot API refuses the call with %d", failure.Code)
	if strings.Contains(strings.ToLower(failure.Description), "logged out") {
		return message + ": the bot was logged out of it (logOut), which lasts ten minutes or longer; " +
			"wait, or look at the Bot API server that the bot belongs to"
	}
	return message + "; wait, or look at the bot with BotFather"
}

func (*botAPI) waits(err error) time.Duration {
	if failure, ok := errors.AsType[*telegram.Error](err); ok {
		return failure.RetryAfter
	}
	return 0
}

func (b *botAPI) fetch(s *settings.Settings) (verdict, time.Duration) {
	if s == nil {
		b.polling.permit(nil)
		return verdict{}, 0
	}
	b.polling.permit(s.Telegram)
	return b.polling.verdict()
}

func (b *botAPI) news() <-chan struct{} { return b.polling.news }
