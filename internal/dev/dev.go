// Package dev is a dev process: a server of one project with simulated messengers and a webhook receiver, on one machine.
//
// Invariant: it listens on loopback alone, refuses requests that came for another name, sends nothing but to loopback, and does
// not run in a pod.
package dev

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/phoneproof/phoneproof/internal/messenger/whatsapp"
	"github.com/phoneproof/phoneproof/internal/server"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/simulator"
	"github.com/phoneproof/phoneproof/internal/store/memory"
	"github.com/phoneproof/phoneproof/internal/webhook"
)

// Options are the flags of dev.
type Options struct {
	// ProjectFile is the VerificationProject to serve; empty for a made-up one.
	ProjectFile string
	// SecretsDir holds secrets of ProjectFile, as SECRET/KEY; those that it has not are made up.
	SecretsDir string

	api, page, health address
}

// AddFlags adds the flags of dev, with their defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.ProjectFile, "project-file", "", "the VerificationProject to serve, as a YAML file; empty for a made-up one")
	flags.StringVar(&o.SecretsDir, "secrets-dir", "",
		"the folder with the files of the project's secrets, as SECRET/KEY; those that it has not are made up")
	o.api = address{flag: "bind-address", text: "127.0.0.1:8080"}
	o.page = address{flag: "simulator-bind-address", text: "127.0.0.1:8090"}
	o.health = address{flag: "health-bind-address", text: "127.0.0.1:8081"}
	o.api.addFlag(flags, "the loopback address of the API; another port if it is taken and not asked for")
	o.page.addFlag(flags, "the same of the page, the simulated platforms and the webhook receiver")
	o.health.addFlag(flags, "the same of probes and metrics")
}

// process is what a dev process adds to serve.
type process struct {
	sim     *simulator.Simulator
	apiURL  string
	log     logr.Logger
	source  *settings.File
	onStart func(*settings.Settings)
}

// Run serves the project, the simulated platforms and the page until ctx ends, and prints to out where everything is. It
// sets of the dependencies what keeps everything on this machine.
func Run(ctx context.Context, o Options, dependencies server.Dependencies, out io.Writer) error {
	if err := refuseInPod(podToken); err != nil {
		return err
	}
	var listeners []net.Listener
	for _, a := range []*address{&o.api, &o.page, &o.health} {
		listener, err := a.openListener(ctx)
		if err != nil {
			return err
		}
		defer listener.Close() //nolint:errcheck // the server behind it has closed it, unless it did not begin
		listeners = append(listeners, listener)
	}
	files, err := o.findFiles()
	defer os.RemoveAll(files.temporary) //nolint:errcheck // it is in the folder for temporary files
	if err != nil {
		return fmt.Errorf("prepare project files: %w", err)
	}
	log := dependencies.Log
	secrets := cmp.Or(files.given, files.madeUp)
	source, err := settings.NewFileWithSpare(files.project, secrets, files.madeUp, clock.RealClock{}, log.WithName("settings"))
	if err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	requests := memory.NewBackend(memory.Options{})
	d := &process{apiURL: o.api.url(), log: log, source: source}
	d.sim = simulator.New(simulator.Options{
		WebhookSecret: d.webhookSecret, Redirect: d.redirectCallback, Log: log.WithName("simulator"),
		Backend: &simulator.Backend{URL: o.api.url(), Key: files.readPageKey}, ResetLimits: requests.ForgetLimits,
	})
	d.onStart = func(s *settings.Settings) { o.printInstructions(out, s, &files) }
	dependencies.Settings = source
	dependencies.NewGuard = webhook.NewDevGuard // its receivers are on loopback
	dependencies.WrapHandler = func(next http.Handler) http.Handler { return onlyLoopback(d.sim.WrapAPI(next)) }
	dependencies.Memory = requests
	if !dependencies.RealLinks {
		dependencies.PhoneURL = o.page.url() + "/"
	}
	dependencies.Listener, dependencies.HealthListener = listeners[0], listeners[2]
	dependencies.Runnables = []manager.Runnable{
		simulator.NewServer(onlyLoopback(d.sim), listeners[1], log), d.sim, manager.RunnableFunc(d.followAccounts),
	}
	return server.Run(ctx, server.Options{
		Store:     server.StoreMemory,
		Platforms: server.PlatformOptions{GraphURL: nowhere, BotAPIURL: nowhere, GatewayURL: nowhere, SimulatorURL: o.page.url()},
		Webhook:   server.WebhookOptions{Deny: exceptLoopback()},
	}, dependencies)
}

// nowhere is where credentials go that are not simulated ones: to a name that never resolves (RFC 6761).
const nowhere = "https://not-in-dev.invalid"

// webhookSecret is what the receiver checks events with.
func (d *process) webhookSecret() []byte {
	if webhook := d.source.Current().Webhook; webhook != nil {
		return webhook.Secret.Current()
	}
	return nil
}

// redirectCallback has the platforms post to this process, whatever baseURL the project has for its life elsewhere.
func (d *process) redirectCallback(callback string) string {
	s := d.source.Current()
	if path, ok := strings.CutPrefix(callback, s.BaseURL+"/"); ok && s.BaseURL != "" {
		return d.apiURL + s.PathPrefix + "/" + path
	}
	if strings.HasPrefix(callback, d.apiURL+"/") {
		return callback
	}
	return ""
}

// followAccounts registers the project's accounts with the simulator, now and whenever they change. After the first time it
// calls onStart.
func (d *process) followAccounts(ctx context.Context) error {
	changes, cancel := d.source.Subscribe()
	defer cancel()
	for first := true; ; first = false {
		current := d.source.Current()
		if err := d.registerAccounts(current); err != nil {
			d.log.Error(err, "register accounts with the simulator failed")
		}
		if first {
			d.onStart(current)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changes:
		}
	}
}

func (d *process) registerAccounts(s *settings.Settings) error {
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
