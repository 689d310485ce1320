package server

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/messenger/telegram"
	"github.com/phoneproof/phoneproof/internal/messenger/whatsapp"
)

// PlatformOptions are the addresses of the messengers' platforms. Only the user who runs the process sets them: a project that
// could would redirect the credentials of other projects.
type PlatformOptions struct {
	// GraphURL and BotAPIURL are the APIs of WhatsApp and Telegram; empty for the public ones.
	GraphURL  string
	BotAPIURL string
	// GatewayURL is Telegram's Gateway, which sends codes; empty for the public one.
	GatewayURL string
	// SimulatorURL is where simulated credentials are sent; empty for nowhere.
	SimulatorURL string
}

// AddFlags adds the flags of the platforms.
func (o *PlatformOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.GraphURL, "whatsapp-url", "", "Meta's Graph API, if not the public one")
	flags.StringVar(&o.BotAPIURL, "telegram-url", "", "the Bot API, if not the public one")
	flags.StringVar(&o.GatewayURL, "telegram-gateway-url", "", "Telegram's Gateway, which sends codes, if not the public one")
	flags.StringVar(&o.SimulatorURL, "simulator-url", "",
		"where credentials that begin with sim_ go, and no others, in place of Meta and Telegram; without it they go nowhere")
}

// Validate returns an error for URLs with which no server would start.
func (o *PlatformOptions) Validate() error {
	if _, err := o.newGraphClient(nil); err != nil {
		return fmt.Errorf("--whatsapp-url or --simulator-url: %w", err)
	}
	if _, err := o.newBotClient(nil); err != nil {
		return fmt.Errorf("--telegram-url or --simulator-url: %w", err)
	}
	if _, err := o.newGatewayClient(nil); err != nil {
		return fmt.Errorf("--telegram-gateway-url or --simulator-url: %w", err)
	}
	return nil
}

func (o *PlatformOptions) newGraphClient(metrics *messenger.CallMetrics) (*whatsapp.Client, error) {
	return whatsapp.NewClient(whatsapp.ClientOptions{GraphURL: o.GraphURL, SimulatorURL: o.SimulatorURL, Metrics: metrics})
}

func (o *PlatformOptions) newBotClient(metrics *messenger.CallMetrics) (*telegram.Client, error) {
	return telegram.NewClient(telegram.ClientOptions{BaseURL: o.BotAPIURL, SimulatorURL: o.SimulatorURL, Metrics: metrics})
}

func (o *PlatformOptions) newGatewayClient(metrics *messenger.CallMetrics) (*telegram.GatewayClient, error) {
	client, err := telegram.NewGatewayClient(telegram.ClientOptions{BaseURL: o.GatewayURL, SimulatorURL: o.SimulatorURL, Metrics: metrics})
	if err != nil {
		return nil, fmt.Errorf("create sender of codes: %w", err)
	}
	return client, nil
}
