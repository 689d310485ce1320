package app

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/phoneproof/phoneproof/internal/logging"
	"github.com/phoneproof/phoneproof/internal/server"
	"github.com/phoneproof/phoneproof/internal/simulator"
	"github.com/phoneproof/phoneproof/internal/version"
)

// simulatorOptions are the flags of simulator.
type simulatorOptions struct {
	address    string
	secretFile string
	accounts   []string
	apiURL     string
	apiKeyFile string
	caFile     string
	log        logging.Options
}

func newSimulatorCommand() *cobra.Command {
	var o simulatorOptions
	cmd := &cobra.Command{
		Use:   "simulator",
		Short: "Play WhatsApp, Telegram and their users, for demos and tests",
		Long: `Play the platforms of WhatsApp and Telegram and the people who use them, for demos and for tests of your own.

NOTHING THAT IT SAYS IS TRUE OF A REAL PHONE. Anyone who can reach it can send any message as any user, so give the servers
of real projects no --simulator-url. It takes credentials that begin with sim_ and no others.

A credential names its account: a Telegram token is sim_BOTUSERNAME, a WhatsApp access token sim_DIGITS of the business
number, each with :ANYTHING after it if you like. The WhatsApp app secret is the access token once more, or what
--whatsapp-account says. The page is at /, docs/simulator.md describes the HTTP API, and /receiver takes webhooks.`,
		Example: `  # beside a serve with --simulator-url http://simulator:8090
  phoneproof simulator --webhook-secret-file secrets/shop/webhook \
    --whatsapp-account number=+4915112345670,id=1234567890,secret=sim_4915112345670,callback=http://shop:8080/hooks/whatsapp`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := o.log.NewLogger(cmd.ErrOrStderr())
			if err != nil {
				return fmt.Errorf("configure logging: %w", err)
			}
			return o.run(cmd.Context(), logger)
		},
	}
	o.addFlags(cmd.Flags())
	completeLogValues(cmd, "log-")
	return cmd
}

func (o *simulatorOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.address, "bind-address", ":8090", "the address of everything: APIs, receiver and page")
	flags.StringVar(&o.secretFile, "webhook-secret-file", "",
		"the file with the secret that the receiver checks webhooks with; without it signatures are not judged")
	flags.StringArrayVar(&o.accounts, "whatsapp-account", nil,
		"a WhatsApp account whose callback is set by hand, as number=+NUMBER,id=PHONENUMBERID[,secret=sim_...][,callback=URL]; repeatable")
	flags.StringVar(&o.apiURL, "api-url", "", "the verification API that the page starts verifications with")
	flags.StringVar(&o.apiKeyFile, "api-key-file", "", "the file with the API key for --api-url")
	flags.StringVar(&o.caFile, "ca-file", "", "the certificates to trust for callbacks by https, as PEM; empty for the system's")
	o.log.AddFlags(flags)
}

func (o *simulatorOptions) run(ctx context.Context, log logr.Logger) error {
	options, err := o.newSimulatorOptions(log)
	if err != nil {
		return fmt.Errorf("configure simulator: %w", err)
	}
	sim := simulator.New(options)
	for _, text := range o.accounts {
		account, err := parseAccount(text)
		if err == nil {
			err = sim.AddWhatsApp(account)
		}
		if err != nil {
			return fmt.Errorf("--whatsapp-account: %w", err)
		}
	}
	if err := server.CheckAddress("bind-address", o.address); err != nil {
		return err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", o.address)
	if err != nil {
		return fmt.Errorf("--bind-address: %w", err)
	}
	log.Info("simulating WhatsApp and Telegram: nothing here is true of a real phone",
		"address", listener.Addr().String(), "version", version.Version())
	return server.RunBehind(ctx, simulator.NewServer(sim, listener, log), sim)
}

// newSimulatorOptions returns what the flags make of a simulator.
func (o *simulatorOptions) newSimulatorOptions(log logr.Logger) (simulator.Options, error) {
	options := simulator.Options{Log: log.WithName("simulator")}
	if err := errors.Join(checkReadable("webhook-secret-file", o.secretFile), checkReadable("api-key-file", o.apiKeyFile)); err != nil {
		return options, err
	}
	if o.secretFile != "" {
		options.WebhookSecret = func() []byte { return []byte(readLine(o.secretFile)) }
	}
	switch {
	case (o.apiURL == "") != (o.apiKeyFile == ""):
		return options, errors.New("--api-url and --api-key-file belong together")
	case o.apiURL != "":
		options.Backend = &simulator.Backend{URL: o.apiURL, Key: func() string { return readLine(o.apiKeyFile) }}
	}
	if o.caFile == "" {
		return options, nil
	}
	pem, err := os.ReadFile(o.caFile)
	if err != nil {
		return options, fmt.Errorf("--ca-file: %w", err)
	}
	options.RootCAs = x509.NewCertPool()
	if !options.RootCAs.AppendCertsFromPEM(pem) {
		return options, fmt.Errorf("--ca-file %s holds no certificate", o.caFile)
	}
	return options, nil
}

// checkReadable reports the file of a flag that cannot be opened, unless its name is empty. Its content may change later.
func checkReadable(flag, name string) error {
	if name == "" {
		return nil
	}
	file, err := os.Open(name) //nolint:gosec // the path is a flag
	if err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	return file.Close()
}

// readLine returns what a file holds now, without the newline at its end; nothing if it cannot be read.
func readLine(file string) string {
	content, err := os.ReadFile(file) //nolint:gosec // the path is a flag
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r")
}

// parseAccount reads number=...,id=...,secret=...,callback=...
func parseAccount(text string) (simulator.WhatsAppAccount, error) {
	var a simulator.WhatsAppAccount
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "number":
			a.Number = value
		case "id":
			a.PhoneNumberID = value
		case "secret":
			a.AppSecret = value
		case "callback":
			a.Callback = value
		default:
			return a, fmt.Errorf("%q is none of number, id, secret and callback", name)
		}
	}
	return a, nil
}
