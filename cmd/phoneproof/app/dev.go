package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/phoneproof/phoneproof/internal/messenger/whatsapp"
	"github.com/phoneproof/phoneproof/internal/server"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/simulator"
	"github.com/phoneproof/phoneproof/internal/webhook"
)

// devOptions are the flags of dev.
type devOptions struct {
	projectFile string
	secretsDir  string
	api         devAddress
	page        devAddress
	health      devAddress
	log         logFlags
}

func newDevCommand(dependencies server.Dependencies) *cobra.Command {
	var o devOptions
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Try everything on this machine: the API, simulated messengers and a webhook receiver",
		Long: `Run the verification API of one project with simulated messengers and a webhook receiver, on this machine alone, with
nothing to configure and nothing kept. A page plays the phones: open a link, send the text, see the webhook arrive.

NOTHING THAT IT SAYS IS TRUE OF A REAL PHONE. It listens on loopback only, reaches nothing but loopback, and does not run in
a pod. With --project-file it serves your own project, with secrets that are made up unless you give --secrets-dir. WhatsApp
and Telegram are simulated whatever the credentials are: those that begin with sim_ work, others go nowhere.`,
		Example: `  phoneproof dev
  phoneproof dev --project-file project.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := refuseInPod(podToken); err != nil {
				return err
			}
			logger, err := o.log.logger(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			dependencies.Log = logger
			return o.run(cmd.Context(), dependencies, cmd.OutOrStdout())
		},
	}
	o.bind(cmd.Flags())
	completeLogValues(cmd, "log-")
	completeFiles(cmd, "project-file", "yaml", "yml", "json")
	completeFolders(cmd, "secrets-dir")
	return cmd
}

func (o *devOptions) bind(flags *pflag.FlagSet) {
	flags.StringVar(&o.projectFile, "project-file", "", "the VerificationProject to serve, as a YAML file; empty for a made-up one")
	flags.StringVar(&o.secretsDir, "secrets-dir", "",
		"the folder with the files of the project's secrets, as SECRET/KEY; empty to make them up")
	o.api = devAddress{flag: "bind-address", text: "127.0.0.1:8080"}
	o.page = devAddress{flag: "simulator-bind-address", text: "127.0.0.1:8090"}
	o.health = devAddress{flag: "health-bind-address", text: "127.0.0.1:8081"}
	o.api.bind(flags, "the loopback address of the API; another port if it is taken and not asked for")
	o.page.bind(flags, "the same of the page, the simulated platforms and the webhook receiver")
	o.health.bind(flags, "the same of probes and metrics")
	o.log.bind(flags)
	flags.Lookup("log-level").DefValue, o.log.level = "warn", "warn"
	flags.Lookup("log-format").DefValue, o.log.format = "text", "text"
}

// podToken is where pods find the token of their ServiceAccount.
const podToken = "/var/run/secrets/kubernetes.io/serviceaccount" //nolint:gosec // a path

// refuseInPod keeps dev out of clusters, where loopback is shared with sidecars and others could reach the page. A pod is
// known by its environment or by its token.
func refuseInPod(token string) error {
	if _, err := os.Stat(token); os.Getenv("KUBERNETES_SERVICE_HOST") == "" && err != nil {
		return nil //nolint:nilerr // there is none, which is good
	}
	return errors.New("dev is for a developer's machine and does not run in a pod: in a cluster run serve with --simulator-url, " +
		"and phoneproof simulator beside it")
}

// dev is what a dev process adds to serve.
type dev struct {
	sim    *simulator.Simulator
	apiURL string
	log    logr.Logger
	source *settings.File
	tell   func(*settings.Settings)
}

func (o *devOptions) run(ctx context.Context, dependencies server.Dependencies, out io.Writer) error {
	var listeners []net.Listener
	for _, address := range []*devAddress{&o.api, &o.page, &o.health} {
		listener, err := address.openListener(ctx)
		if err != nil {
			return err
		}
		defer listener.Close() //nolint:errcheck // the server behind it has closed it, unless it did not begin
		listeners = append(listeners, listener)
	}
	made, err := o.files()
	if err != nil {
		return err
	}
	defer made.remove()
	log := dependencies.Log
	source, err := settings.NewFile(made.project, made.secrets, clock.RealClock{}, log.WithName("settings"))
	if err != nil {
		return err
	}
	d := &dev{apiURL: o.api.url(), log: log, source: source}
	d.sim = simulator.New(simulator.Options{
		WebhookSecret: d.webhookSecret, Redirect: d.redirect, Log: log.WithName("simulator"),
		Backend: &simulator.Backend{URL: o.api.url(), Key: made.key},
	})
	d.tell = func(s *settings.Settings) { o.introduce(out, s, made) }
	dependencies.Settings = source
	dependencies.NewGuard = webhook.NewDevGuard // its receivers are on loopback
	dependencies.WrapHandler = onlyLoopback
	dependencies.Listener, dependencies.HealthListener = listeners[0], listeners[2]
	dependencies.Runnables = []manager.Runnable{
		simulatorServer(onlyLoopback(d.sim), listeners[1], log), d.sim, manager.RunnableFunc(d.followAccounts),
	}
	return server.Run(ctx, server.Options{
		Store:     server.StoreMemory,
		Platforms: server.PlatformOptions{GraphURL: nowhere, BotAPIURL: nowhere, SimulatorURL: o.page.url()},
		Webhook:   server.WebhookOptions{Deny: exceptLoopback()},
	}, dependencies)
}

// nowhere is where credentials go that are not simulated ones: to a name that never resolves (RFC 6761).
const nowhere = "https://not-in-dev.invalid"

// webhookSecret is what the receiver checks events with.
func (d *dev) webhookSecret() []byte {
	if webhook := d.source.Current().Webhook; webhook != nil {
		return webhook.Secret.Current()
	}
	return nil
}

// redirect has the platforms post to this process, whatever baseURL the project has for its life elsewhere.
func (d *dev) redirect(callback string) string {
	s := d.source.Current()
	if path, ok := strings.CutPrefix(callback, s.BaseURL+"/"); ok && s.BaseURL != "" {
		return d.apiURL + s.PathPrefix + "/" + path
	}
	if strings.HasPrefix(callback, d.apiURL+"/") {
		return callback
	}
	return ""
}

// followAccounts tells the simulator of the project's accounts, now and whenever they change, and then the user how to
// begin.
func (d *dev) followAccounts(ctx context.Context) error {
	changes, cancel := d.source.Subscribe()
	defer cancel()
	for first := true; ; first = false {
		current := d.source.Current()
		if err := d.register(current); err != nil {
			d.log.Error(err, "tell the simulator of the project's accounts")
		}
		if first {
			d.tell(current)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changes:
		}
	}
}

func (d *dev) register(s *settings.Settings) error {
	var errs []error
	if w := s.WhatsApp; w != nil && w.Simulated {
		errs = append(errs, d.sim.AddWhatsApp(simulator.WhatsAppAccount{
			PhoneNumberID: w.PhoneNumberID, Number: w.PhoneNumber, Name: s.DisplayName, AppSecret: string(w.AppSecret.Current()),
			Callback: d.apiURL + s.PathPrefix + whatsapp.Path,
		}))
	}
	if t := s.Telegram; t != nil && t.Simulated {
		errs = append(errs, d.sim.AddTelegram(simulator.TelegramAccount{Username: t.BotUsername, Token: string(t.BotToken.Current())}))
	}
	return errors.Join(errs...)
}

// devAddress is an address of dev. Only loopback will do.
type devAddress struct {
	flag  string
	text  string
	given *pflag.Flag
}

func (a *devAddress) bind(flags *pflag.FlagSet, usage string) {
	flags.StringVar(&a.text, a.flag, a.text, usage)
	a.given = flags.Lookup(a.flag)
}

func (a *devAddress) url() string { return "http://" + a.text }

// openListener opens a listener at the address, and notes its port: any other one if a default one is taken.
func (a *devAddress) openListener(ctx context.Context) (net.Listener, error) {
	host, port, err := net.SplitHostPort(a.text)
	if err != nil || port == "" || !loopback(host) {
		return nil, fmt.Errorf("--%s is %q: dev listens on loopback only, as 127.0.0.1:PORT or [::1]:PORT", a.flag, a.text)
	}
	listener, err := listenTCP(ctx, a.text)
	if err != nil && !a.given.Changed {
		listener, err = listenTCP(ctx, net.JoinHostPort(host, "0"))
	}
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", a.flag, err)
	}
	a.text = listener.Addr().String()
	return listener, nil
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// onlyLoopback refuses requests that came for another name: a page elsewhere whose name leads to this machine must not read
// what is here (DNS rebinding).
func onlyLoopback(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = strings.Trim(r.Host, "[]")
		}
		if host != "localhost" && !loopback(host) {
			http.Error(w, "This is a development server: call it by localhost or 127.0.0.1.", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// exceptLoopback returns all addresses but loopback's, as rules of --webhook-deny: simulated events must reach nobody who
// would believe them.
func exceptLoopback() []string {
	var all []string
	for _, spared := range []string{"127.0.0.0/8", "::1/128"} {
		kept := netip.MustParsePrefix(spared)
		for bits := 1; bits <= kept.Bits(); bits++ {
			bytes := kept.Masked().Addr().AsSlice()
			bytes[(bits-1)/8] ^= 0x80 >> ((bits - 1) % 8) // the other half of what is left
			other, _ := netip.AddrFromSlice(bytes)
			all = append(all, netip.PrefixFrom(other, bits).Masked().String())
		}
	}
	return all
}

// devFiles are the project's files, those that were made up in a folder of their own.
type devFiles struct {
	project, secrets string
	keyFile          string // of the API key to begin with; empty if the project has none that may do both
	madeUp           string
}

func (f devFiles) remove() {
	if f.madeUp != "" {
		_ = os.RemoveAll(f.madeUp) // it is in the folder for temporary files
	}
}

// key returns the API key; nothing if it cannot be read.
func (f devFiles) key() string { return readLine(f.keyFile) }

func (f devFiles) secretFile(name, key string) string { return filepath.Join(f.secrets, name, key) }
