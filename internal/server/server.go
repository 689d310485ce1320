// Package server implements the serve process: it connects the API, the messengers, the loops and a store to a server of one
// project, which comes from a file or from a cluster.
//
// Invariant: the addresses that webhooks may reach depend only on Options and on the guard that the program passes. No package
// variable changes the guard, and the environment can only add refused addresses.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/phoneproof/phoneproof/controllers/request"
	"github.com/phoneproof/phoneproof/internal/boundedhttp"
	"github.com/phoneproof/phoneproof/internal/health"
	"github.com/phoneproof/phoneproof/internal/httpapi"
	"github.com/phoneproof/phoneproof/internal/page"
	"github.com/phoneproof/phoneproof/internal/panics"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/store/memory"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/internal/version"
	"github.com/phoneproof/phoneproof/internal/webhook"
)

// Dependencies are the inputs of a server that do not come from flags.
type Dependencies struct {
	// Log is the process's log. Its zero value logs nothing.
	Log logr.Logger
	// RequestLog receives a record for each request; nil for none.
	RequestLog slog.Handler
	// Clock is the clock of this machine; nil for the real one.
	Clock clock.Clock
	// NewGuard returns the guard that checks each address before a webhook is sent to it; nil for webhook.NewGuard.
	NewGuard func(webhook.GuardConfig) *webhook.Guard
	// StoragePeriod is how often a working store is checked for the project's conditions; zero for the default.
	StoragePeriod time.Duration
	// Settings is the opened Options.ProjectFile; nil to open it.
	Settings *settings.File
	// Listener and HealthListener serve the API and the probes; nil to listen on the addresses in Options.
	Listener       net.Listener
	HealthListener net.Listener
	// ConnectionBudget is the memory in bytes that connections may use; zero for boundedhttp.Budget.
	ConnectionBudget int64
	// WrapHandler wraps each handler of the server; nil for none.
	WrapHandler func(http.Handler) http.Handler
	// Memory holds requests that are kept in memory; nil for one of its own.
	Memory *memory.Backend
	// PhoneURL is the page of simulated phones that users' pages lead to in place of the messengers; empty for the messengers. It is no
	// flag and no setting: who sets it learns the codes.
	PhoneURL string
	// RealLinks has users' pages of dev lead to the messengers, as those of serve do, for tests of the pages.
	RealLinks bool
	// Runnables run next to the server and end after it.
	Runnables []manager.Runnable
}

// Run serves a project until ctx ends. Then the API drains before everything else stops.
func Run(ctx context.Context, o Options, d Dependencies) error {
	if d.Settings == nil {
		if err := CheckSecretsDir(o.SecretsDir); err != nil {
			return err
		}
	}
	d = d.withDefaults()
	s := &server{
		options: o, dependencies: d, registry: prometheus.NewRegistry(), log: d.Log,
		clock: newStoreClock(d.Clock, d.Log.WithName("clock")),
	}
	if d.RequestLog != nil {
		s.requests = d.RequestLog.WithAttrs([]slog.Attr{slog.String("logger", httpLogger)})
	}
	if o.Project != "" {
		return s.serveCluster(ctx)
	}
	return s.serveFile(ctx)
}

// withDefaults returns d with its unset fields set to their defaults.
func (d Dependencies) withDefaults() Dependencies {
	if d.Clock == nil {
		d.Clock = clock.RealClock{}
	}
	if d.NewGuard == nil {
		d.NewGuard = webhook.NewGuard
	}
	if d.ConnectionBudget == 0 {
		d.ConnectionBudget = boundedhttp.Budget()
	}
	if d.Memory == nil {
		d.Memory = memory.NewBackend(memory.Options{})
	}
	if d.WrapHandler == nil {
		d.WrapHandler = func(next http.Handler) http.Handler { return next }
	}
	return d
}

// httpLogger is the logger name of request records.
const httpLogger = "http"

// server creates the parts of a serve process and holds what they share.
type server struct {
	options      Options
	dependencies Dependencies
	project      verification.CodeSpace
	current      func() *settings.Settings
	apiServerURL string // empty without a cluster
	registry     *prometheus.Registry
	log          logr.Logger
	requests     slog.Handler // receives request records; nil for none
	clock        *storeClock
}

// settingsSource provides settings.
type settingsSource interface {
	manager.Runnable

	Problems() []settings.Problem
	LastError() error
}

// run serves requests from a store until ctx ends, and runs the loops in the background.
func (s *server) run(
	ctx context.Context, store verification.Store, source settingsSource, inbound *channels, loops ...manager.Runnable,
) error {
	if err := s.registerInfo(); err != nil {
		return fmt.Errorf("register build info: %w", err)
	}
	listeners, err := s.openListeners(ctx)
	if err != nil {
		return fmt.Errorf("open listeners: %w", err)
	}
	api, err := s.newAPI(listeners.api, inbound)
	if err != nil {
		return errors.Join(err, listeners.api.Close(), listeners.health.Close())
	}
	probes := s.newHealth(listeners.health, health.Options{
		Problems: source.Problems,
		Refused:  source.LastError,
		Check:    store.Ready,
		Serving: func() error {
			switch {
			case s.current() == nil:
				return errNoProject
			case api.Draining():
				return errors.New("draining")
			default:
				return nil
			}
		},
	})
	s.log.Info("serving", "project", s.project.Name(), "version", version.Version(), "store", s.options.Store,
		"address", listeners.api.Addr().String(), "healthAddress", listeners.health.Addr().String())
	behind := append(slices.Concat(loops, inbound.replies, s.dependencies.Runnables), source, probes)
	return RunBehind(ctx, drainAfter(startWhenReady(source, api), inbound.codes.Drain), behind...)
}

// drainAfter returns a runnable that starts part and, after its end, waits for what it began: their results need the store.
func drainAfter(part manager.Runnable, drain func()) manager.Runnable {
	return manager.RunnableFunc(func(ctx context.Context) error {
		defer drain()
		return part.Start(ctx)
	})
}

// startWhenReady returns a runnable that starts part when settings are available.
func startWhenReady(source settingsSource, part manager.Runnable) manager.Runnable {
	object, ok := source.(*object)
	if !ok {
		return part
	}
	return manager.RunnableFunc(func(ctx context.Context) error {
		if err := object.Wait(ctx); err != nil {
			return nil //nolint:nilerr // the process ended before the project was available
		}
		return part.Start(ctx)
	})
}

// RunBehind runs a front and the parts behind it. When ctx ends, the front ends first and the other parts after it. When any
// part fails, the others end too.
func RunBehind(ctx context.Context, front manager.Runnable, behind ...manager.Runnable) error {
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, background := errgroup.WithContext(background)
	for _, part := range behind {
		group.Go(func() error { return panics.ToError(func() error { return part.Start(background) }) })
	}
	group.Go(func() error {
		defer stop()
		serving, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(background, cancel)()
		return panics.ToError(func() error { return front.Start(serving) })
	})
	return group.Wait()
}

// newRequestLoop returns the loop that processes requests. It calls maySend right before it sends an event.
func (s *server) newRequestLoop(ctx context.Context, store verification.Store, maySend func() bool) (*request.Controller, error) {
	addresses, err := s.options.Webhook.guardConfig(ctx, s.apiServerURL)
	if err != nil {
		return nil, fmt.Errorf("configure webhook guard: %w", err)
	}
	counters, err := request.NewMetrics(s.registry)
	if err != nil {
		return nil, fmt.Errorf("register request metrics: %w", err)
	}
	namespace, _, _ := strings.Cut(s.project.Name(), "/")
	return request.New(request.Options{
		Store: store, Settings: s.current, Namespace: namespace, Metrics: counters, ClaimLease: s.options.ClaimLease, Clock: s.clock,
		Sender: webhook.NewSender(webhook.Options{
			Guard: s.dependencies.NewGuard(addresses), Version: version.Version(), MaySend: maySend, Registerer: s.registry, Clock: s.clock,
		}),
		Log: s.log.WithName("requests"),
	}), nil
}

// listeners are the listeners of a server.
type listeners struct{ api, health net.Listener }

// openListeners opens the listeners that Dependencies does not provide.
func (s *server) openListeners(ctx context.Context) (listeners, error) {
	var (
		l   listeners
		err error
	)
	if l.api, err = listen(ctx, "--bind-address", s.options.Address, s.dependencies.Listener); err != nil {
		return l, err
	}
	if l.health, err = listen(ctx, "--health-bind-address", s.options.HealthAddress, s.dependencies.HealthListener); err != nil {
		return l, errors.Join(err, l.api.Close())
	}
	return l, nil
}

// listen opens the listener of an address, which is named in errors, unless it is open already.
func listen(ctx context.Context, name, address string, open net.Listener) (net.Listener, error) {
	if open != nil {
		return open, nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return listener, nil
}

// newPages returns the handler of the pages.
func (s *server) newPages(service *verification.Service, holds *boundedhttp.HoldLimiter) (*page.Handler, error) {
	pages, err := page.NewHandler(page.Options{
		Settings: s.current, Service: service, Link: prepareLink, Draining: httpapi.Draining, Clock: s.clock,
		Log: s.log.WithName("page"), Registerer: s.registry, LogoFile: s.options.LogoFile, Holds: holds,
		PhoneURL: s.dependencies.PhoneURL,
	})
	if err != nil {
		return nil, fmt.Errorf("create page: %w", err)
	}
	return pages, nil
}

func (s *server) newAPI(listener net.Listener, inbound *channels) (*httpapi.Server, error) {
	log := s.log.WithName(httpLogger)
	holds := boundedhttp.NewHoldLimiter(s.apiBudget())
	pages, err := s.newPages(inbound.service, holds)
	if err != nil {
		return nil, err
	}
	api, err := httpapi.New(httpapi.Options{
		Pages:    pages,
		Settings: s.current, Service: inbound.service, Invite: s.newInvitation, Hooks: inbound.hooks, Log: log, Requests: s.requests,
		Registerer: s.registry, Clock: s.clock, Holds: holds, ReadUnsigned: inbound.whatsApp.ReadUnsigned,
	})
	if err != nil {
		return nil, fmt.Errorf("create API: %w", err)
	}
	drainDelay := s.options.DrainDelay
	if drainDelay == 0 {
		drainDelay = -1 // the API treats zero as its default
	}
	return httpapi.NewServer(httpapi.ServerOptions{
		Handler: s.dependencies.WrapHandler(api), Listener: listener, Budget: s.apiBudget(), DrainDelay: drainDelay,
		Log: log, Registerer: s.registry,
	})
}

// healthBudget returns the memory in bytes that is reserved for probes, so that a flood of API requests does not make the
// kubelet kill the pod.
func (s *server) healthBudget() int64 { return s.dependencies.ConnectionBudget / 8 }

// apiBudget returns the rest of the memory for connections, in bytes.
func (s *server) apiBudget() int64 { return s.dependencies.ConnectionBudget - s.healthBudget() }

func (s *server) newHealth(listener net.Listener, o health.Options) *health.Server {
	o.Metrics = prometheus.Gatherers{metrics.Registry, s.registry}
	o.Log, o.Guard, o.Budget = s.log.WithName("health"), s.dependencies.WrapHandler, s.healthBudget()
	return health.New(listener, o)
}
