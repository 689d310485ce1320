package main

import (
	"fmt"
	"net/http"

	"github.com/spf13/pflag"

	"github.com/phoneproof/phoneproof/internal/channel/telegram"
	"github.com/phoneproof/phoneproof/internal/channel/whatsapp"
	"github.com/phoneproof/phoneproof/internal/httpapi"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// channelFlags say where the messengers' platforms are. They belong to whoever runs the process: a project that could name
// them would send its neighbours' credentials anywhere.
type channelFlags struct {
	graphURL     string
	botAPIURL    string
	simulatorURL string
}

func (f *channelFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.graphURL, "whatsapp-url", "", "Meta's Graph API, if not the public one")
	flags.StringVar(&f.botAPIURL, "telegram-url", "", "the Bot API, if not the public one")
	flags.StringVar(&f.simulatorURL, "simulator-url", "",
		"where credentials that begin with sim_ go, and no others, in place of Meta and Telegram; without it they go nowhere")
}

// channels are the inbound sides of the messengers.
type channels struct {
	hooks   map[string]http.Handler
	replies []runnable
}

// channels returns the handlers of the messengers' callbacks, and what sends their replies.
func (s *server) channels(service *verification.Service) (channels, error) {
	graph, err := whatsapp.NewClient(whatsapp.ClientOptions{
		GraphURL: s.options.channel.graphURL, SimulatorURL: s.options.channel.simulatorURL,
	})
	if err != nil {
		return channels{}, fmt.Errorf("--whatsapp-url: %w", err)
	}
	whatsApp, err := whatsapp.NewHook(whatsapp.Options{
		Settings: s.current, Service: service, Client: graph, Log: s.log.WithName("whatsapp"), Registerer: s.registry,
	})
	if err != nil {
		return channels{}, err
	}
	botAPI, err := telegram.NewClient(telegram.ClientOptions{
		BaseURL: s.options.channel.botAPIURL, SimulatorURL: s.options.channel.simulatorURL,
	})
	if err != nil {
		return channels{}, fmt.Errorf("--telegram-url: %w", err)
	}
	bot, err := telegram.New(telegram.Options{
		Settings: s.current, Service: service, Client: botAPI, Log: s.log.WithName("telegram"), Registerer: s.registry,
	})
	if err != nil {
		return channels{}, err
	}
	return channels{
		hooks:   map[string]http.Handler{whatsapp.Path: whatsApp, telegram.HookPath: bot.Hook()},
		replies: []runnable{whatsApp, bot},
	}, nil
}

// invite returns what leads a user to send the code.
func invite(s *settings.Settings, method verification.Method, code verification.Code) httpapi.Invitation {
	if method == verification.Telegram {
		return httpapi.Invitation{
			Link: telegram.Link(s.Telegram.BotUsername, code), ExpectedText: telegram.ExpectedText(code),
		}
	}
	text := whatsapp.ExpectedText(s.DisplayName, code)
	return httpapi.Invitation{Link: whatsapp.Link(s.WhatsApp.PhoneNumber, text), ExpectedText: text}
}
