package server

import (
	"context"
	"fmt"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/callback"
	"github.com/phoneproof/phoneproof/controllers/projectstatus"
	"github.com/phoneproof/phoneproof/internal/httpapi"
	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/messenger/telegram"
	"github.com/phoneproof/phoneproof/internal/messenger/whatsapp"
	"github.com/phoneproof/phoneproof/internal/page"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// channels holds the messenger parts of a server.
type channels struct {
	hooks    map[string]http.Handler
	whatsApp *whatsapp.Hook
	replies  []manager.Runnable
	codes    *messenger.CodeSender

	service *verification.Service
	graph   *whatsapp.Client
	botAPI  *telegram.Client
	bot     *telegram.Channel
	gateway *telegram.Gateway
}

// newChannels returns the handlers of the messengers' callbacks, the senders of replies, and the clients for registration.
func (s *server) newChannels(store countedStore) (*channels, error) {
	codeMetrics, err := messenger.NewCodeMetrics(s.current, s.registry)
	if err != nil {
		return nil, fmt.Errorf("create metrics of codes: %w", err)
	}
	callMetrics, err := messenger.NewCallMetrics(s.registry)
	if err != nil {
		return nil, fmt.Errorf("register metrics of messenger calls: %w", err)
	}
	gateway, err := s.newGateway(callMetrics)
	if err != nil {
		return nil, err
	}
	service, err := s.newService(store, func(r *verification.Request) {
		codeMetrics.CountRedeemed(r)
		gateway.CodeRedeemed(r)
	})
	if err != nil {
		return nil, fmt.Errorf("create verification service: %w", err)
	}
	graph, err := s.options.Platforms.newGraphClient(callMetrics)
	if err != nil {
		return nil, fmt.Errorf("--whatsapp-url: %w", err)
	}
	whatsApp, err := whatsapp.NewHook(whatsapp.Options{
		Settings: s.current, Service: service, Client: graph, PageURL: s.provenURL, Codes: codeMetrics,
		Log: s.log.WithName("whatsapp"), Registerer: s.registry, Clock: s.clock,
	})
	if err != nil {
		return nil, fmt.Errorf("create WhatsApp handler: %w", err)
	}
	codes := messenger.NewCodeSender(messenger.CodeSenderOptions{
		Settings: s.current, Service: service, Clock: s.clock, Metrics: codeMetrics, Log: s.log.WithName("codes"),
		Platforms: map[verification.Method]messenger.CodePlatform{verification.WhatsApp: graph, verification.Telegram: gateway},
	})
	service.Sender = codes
	botAPI, err := s.options.Platforms.newBotClient(callMetrics)
	if err != nil {
		return nil, fmt.Errorf("--telegram-url: %w", err)
	}
	bot, err := telegram.New(telegram.Options{
		Settings: s.current, Service: service, Client: botAPI, PageURL: s.provenURL,
		Log: s.log.WithName("telegram"), Registerer: s.registry, Clock: s.clock,
	})
	if err != nil {
		return nil, fmt.Errorf("create Telegram handler: %w", err)
	}
	return &channels{
		hooks:    map[string]http.Handler{whatsapp.Path: whatsApp, telegram.HookPath: bot.Hook()},
		whatsApp: whatsApp,
		replies:  []manager.Runnable{whatsApp, bot},
		codes:    codes,
		service:  service, graph: graph, botAPI: botAPI, bot: bot, gateway: gateway,
	}, nil
}

// newGateway returns the sender of codes through Telegram.
func (s *server) newGateway(metrics *messenger.CallMetrics) (*telegram.Gateway, error) {
	client, err := s.options.Platforms.newGatewayClient(metrics)
	if err != nil {
		return nil, fmt.Errorf("--telegram-gateway-url: %w", err)
	}
	gateway, err := telegram.NewGateway(telegram.GatewayOptions{
		Settings: s.current, Client: client, Clock: s.clock, Log: s.log.WithName("telegram"), Registerer: s.registry,
	})
	if err != nil {
		return nil, fmt.Errorf("create sender of Telegram's codes: %w", err)
	}
	return gateway, nil
}

// countedStore is a store with the methods that servers need.
type countedStore interface {
	verification.Store
	verification.Counter
}

// newService returns the verification service of a store, with metrics.
func (s *server) newService(store countedStore, redeemed func(*verification.Request)) (*verification.Service, error) {
	service := verification.NewService(s.project, store)
	observer, err := newConversions(s.registry, store, redeemed, s.dependencies.Clock, s.log.WithName("metrics"))
	if err != nil {
		return nil, fmt.Errorf("register conversion metrics: %w", err)
	}
	service.Observer = observer
	return service, nil
}

// callbackOptions returns the options of the callback controllers: common for both messengers, each with its own clients and
// log.
func (c *channels) callbackOptions(common callback.Options) channelOptions {
	o := channelOptions{WhatsApp: common, Graph: c.graph, Telegram: common, BotAPI: c.botAPI, Bot: c.bot, Gateway: c.gateway}
	o.WhatsApp.Log, o.Telegram.Log = common.Log.WithName("whatsapp"), common.Log.WithName("telegram")
	return o
}

// registerAlone returns the loop that keeps the callbacks registered in a process without other replicas and project status.
func (s *server) registerAlone(c *channels, changes func() (<-chan struct{}, func())) manager.Runnable {
	return manager.RunnableFunc(func(ctx context.Context) error {
		return runLoops(ctx, newChannelLoops(c.callbackOptions(callback.Options{
			Settings: s.current, Changes: changes, Log: s.log.WithName("channel"),
		})))
	})
}

// The field owners of the callbacks in a project's status. They differ, so that each removes only its own.
const (
	whatsAppFieldOwner = client.FieldOwner("phoneproof-channel-whatsapp")
	telegramFieldOwner = client.FieldOwner("phoneproof-channel-telegram")
)

// callbackOptions returns the options of the callback controllers of a term.
func (c *cluster) callbackOptions(board *projectstatus.Board) channelOptions {
	o := c.inbound.callbackOptions(callback.Options{
		Settings: c.current, Changes: c.source.Subscribe, Projects: c.source, Set: board.Set, Withdraw: board.Withdraw,
		Log: c.log.WithName("channel"),
	})
	o.WhatsApp.Remember = func(ctx context.Context, callback string) error {
		return c.applyStatus(ctx, &verifyv1.VerificationProjectStatus{WhatsApp: channelOf(callback)}, whatsAppFieldOwner)
	}
	o.Telegram.Remember = func(ctx context.Context, callback string) error {
		return c.applyStatus(ctx, &verifyv1.VerificationProjectStatus{Telegram: channelOf(callback)}, telegramFieldOwner)
	}
	return o
}

// channelOf returns the status of a channel; nil without a callback, which removes it.
func channelOf(callback string) *verifyv1.ChannelStatus {
	if callback == "" {
		return nil
	}
	return &verifyv1.ChannelStatus{CallbackURL: callback}
}

// newInvitation returns the link and the text with which a user sends the code, and the page that offers them.
func (s *server) newInvitation(current *settings.Settings, r *verification.Request, code verification.Code) httpapi.Invitation {
	link, text := prepareMessage(current, r, code)
	return httpapi.Invitation{Link: link, ExpectedText: text, PageURL: page.URL(current, r.Method, code, s.clock.Now())}
}

// provenURL returns the page of a proven request for the chat; empty if the project has none.
func (s *server) provenURL(current *settings.Settings, r *verification.Request) string {
	return page.ProvenURL(current, r, s.clock.Now())
}

// prepareMessage returns the text with which a user sends the code, and the link that opens the messenger with it.
func prepareMessage(s *settings.Settings, r *verification.Request, code verification.Code) (link, text string) {
	if r.Method == verification.Telegram {
		return telegram.Link(s.Telegram.BotUsername, code), telegram.ExpectedText(code)
	}
	text = whatsapp.ExpectedText(s, r, code)
	return whatsapp.Link(s.WhatsApp.PhoneNumber, text), text
}

// prepareLink returns the link of prepareMessage.
func prepareLink(s *settings.Settings, r *verification.Request, code verification.Code) string {
	link, _ := prepareMessage(s, r, code)
	return link
}
