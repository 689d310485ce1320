package server

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/messenger/telegram"
	"github.com/phoneproof/phoneproof/internal/messenger/whatsapp"
)

// PlatformOptions say where the messengers' platforms are. They belong to the user who runs the process: a project that
// could name them would send its neighbours' credentials anywhere.
type PlatformOptions struct {
	// GraphURL and BotAPIURL are empty for the public ones.
	GraphURL  string
	BotAPIURL string
	// SimulatorURL is where simulated credentials go; empty for nowhere.
	SimulatorURL string
}

// AddFlags adds the flags of the platforms.
func (o *PlatformOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.GraphURL, "whatsapp-url", "", "Meta's Graph API, if not the public one")
	flags.StringVar(&o.BotAPIURL, "telegram-url", "", "the Bot API, if not the public one")
	flags.StringVar(&o.SimulatorURL, "simulator-url", "",
		"where credentials that begin with sim_ go, and no others, in place of Meta and Telegram; without it they go nowhere")
}

// Validate refuses the URLs that no server would start with.
func (o *PlatformOptions) Validate() error {
	if _, err := o.graph(nil); err != nil {
		return fmt.Errorf("--whatsapp-url or --simulator-url: %w", err)
	}
	if _, err := o.botAPI(nil); err != nil {
		return fmt.Errorf("--telegram-url or --simulator-url: %w", err)
	}
	return nil
}

func (o *PlatformOptions) graph(metrics *messenger.CallMetrics) (*whatsapp.Client, error) {
	return whatsapp.NewClient(whatsapp.ClientOptions{GraphURL: o.GraphURL, SimulatorURL: o.SimulatorURL, Metrics: metrics})
}

func (o *PlatformOptions) botAPI(metrics *messenger.CallMetrics) (*telegram.Client, error) {
	return telegram.NewClient(telegram.ClientOptions{BaseURL: o.BotAPIURL, SimulatorURL: o.SimulatorURL, Metrics: metrics})
}
