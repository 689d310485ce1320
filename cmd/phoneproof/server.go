package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/phoneproof/phoneproof/controllers/request"
	"github.com/phoneproof/phoneproof/internal/agreed"
	"github.com/phoneproof/phoneproof/internal/health"
	"github.com/phoneproof/phoneproof/internal/httpapi"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/store/memory"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/internal/version"
	"github.com/phoneproof/phoneproof/internal/webhook"
)

// runnable is what a process runs until its context ends.
type runnable interface{ Start(context.Context) error }

// runnableFunc is a runnable of a function.
type runnableFunc func(context.Context) error

// Start runs the function.
func (f runnableFunc) Start(ctx context.Context) error { return f(ctx) }

// machineClock returns the clock of this machine. Tests put one here that is wrong.
var machineClock = func() clock.Clock { return clock.RealClock{} }

// serve runs the server until ctx ends: first the API drains, then everything else stops.
func serve(ctx context.Context, o serveOptions, log logr.Logger, requests slog.Handler) error {
	s := server{options: o, registry: prometheus.NewRegistry(), log: log, clock: agreed.New(machineClock(), log.WithName("clock"))}
	s.requests = requests.WithAttrs([]slog.Attr{slog.String("logger", httpLogger)})
	if o.projectFile != "" {
		return s.serveFile(ctx)
	}
	return s.serveCluster(ctx)
}

// httpLogger is the name that the lines of requests come under.
const httpLogger = "http"

// server makes the parts of a serve process from what they share.
type server struct {
	options  serveOptions
	project  verification.Project
	current  func() *settings.Settings
	registry *prometheus.Registry
	log      logr.Logger
	requests slog.Handler // of the lines of requests; nil but in serve
	clock    *agreed.Clock
	dev      *dev // nil but in dev
}

// serveFile serves the project of a file, from memory unless it has a database.
func (s *server) serveFile(ctx context.Context) error {
	source, err := settings.NewFile(s.options.projectFile, s.options.secretsDir, clock.RealClock{}, s.log.WithName("settings"))
	if err != nil {
		return err
	}
	s.project, s.current = verification.NewProject(source.Current().Project), source.Current
	inDatabase := source.Current().Database != nil
	switch {
	case inDatabase && !s.options.storeSet, inDatabase && s.options.store == storePostgreSQL:
		s.options.store = storePostgreSQL
		return s.serveFileFromDatabase(ctx, source)
	case s.options.store == storePostgreSQL:
		return errors.New("--store is postgresql, and the project has no database: set spec.storage.type to PostgreSQL, " +
			"and spec.storage.postgresql.uriSecretRef")
	}
	store := memory.NewBackend(memory.Options{}).Open(s.project.Name())
	loop, err := s.requestLoop(ctx, store, func() bool { return true })
	if err != nil {
		return err
	}
	inbound, err := s.channels(store)
	if err != nil {
		return err
	}
	claims := runnableFunc(func(ctx context.Context) error { return loop.Run(ctx, loop.Claims(store)) })
	registration := s.registerAlone(inbound, source.Subscribe)
	return s.run(ctx, store, source, inbound, append(s.dev.beside(source), claims, registration)...)
}

// settingsSource is where settings come from.
type settingsSource interface {
	runnable

	Problems() []settings.Problem
	LastError() error
}

// run serves requests from a store until ctx ends, with the loops behind it.
func (s *server) run(
	ctx context.Context, store verification.Store, source settingsSource, inbound *channels, loops ...runnable,
) error {
	if err := s.tellInfo(); err != nil {
		return err
	}
	api, err := s.api(ctx, verification.NewService(s.project, store), inbound.hooks)
	if err != nil {
		return err
	}
	probes, err := s.health(ctx, health.Options{
		Problems: source.Problems,
		Refused:  source.LastError,
		Ready: func(ctx context.Context) error {
			switch {
			case s.current() == nil:
				return settings.ErrNoProject
			case api.Draining():
				return errors.New("draining")
			default:
				return store.Ready(ctx)
			}
		},
	})
	if err != nil {
		return err
	}
	s.log.Info("serving", "project", s.project.Name(), "version", version.Version(), "store", s.options.store,
		"address", s.options.address)
	behind := append(slices.Concat(loops, inbound.replies), source, probes)
	return run(ctx, s.whenReady(api, source), behind...)
}

// whenReady holds the API back until there are settings to answer by.
func (s *server) whenReady(api *httpapi.Server, source settingsSource) runnable {
	object, ok := source.(*settings.Object)
	if !ok {
		return api
	}
	return runnableFunc(func(ctx context.Context) error {
		if err := object.Wait(ctx); err != nil {
			return nil //nolint:nilerr // the process was stopped before there was anything to serve
		}
		return api.Start(ctx)
	})
}

// run starts everything. When ctx ends the front ends first, and what is behind it goes on until it has; when any part
// fails the others end too.
func run(ctx context.Context, front runnable, behind ...runnable) error {
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, background := errgroup.WithContext(background)
	for _, part := range behind {
		group.Go(func() error { return part.Start(background) })
	}
	group.Go(func() error {
		defer stop()
		serving, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(background, cancel)()
		return front.Start(serving)
	})
	return group.Wait()
}

// requestLoop returns the loop that moves requests on. maySend is asked right before an event is sent.
func (s *server) requestLoop(ctx context.Context, store verification.Store, maySend func() bool) (*request.Controller, error) {
	guard, err := s.options.webhook.guard(ctx)
	if err != nil {
		return nil, err
	}
	counted, err := request.NewMetrics(s.registry)
	if err != nil {
		return nil, err
	}
	namespace, _, _ := strings.Cut(s.project.Name(), "/")
	return request.New(request.Options{
		Store: store, Settings: s.current, Namespace: namespace, Metrics: counted, ClaimLease: s.options.claimLease, Clock: s.clock,
		Sender: webhook.NewSender(webhook.Options{
			Guard: guard, Version: version.Version(), MaySend: maySend, Registerer: s.registry, Clock: s.clock,
		}),
		Log: s.log.WithName("requests"),
	}), nil
}

func (s *server) api(
	ctx context.Context, service *verification.Service, hooks map[string]http.Handler,
) (*httpapi.Server, error) {
	log := s.log.WithName(httpLogger)
	api, err := httpapi.New(httpapi.Options{
		Settings: s.current, Service: service, Invite: invite, Hooks: hooks, Log: log, Requests: s.requests,
		Registerer: s.registry, Clock: s.clock,
	})
	if err != nil {
		return nil, err
	}
	listener, err := listen(ctx, s.options.address)
	if err != nil {
		return nil, fmt.Errorf("--bind-address: %w", err)
	}
	return httpapi.NewServer(httpapi.ServerOptions{
		Handler: s.dev.before(api), Listener: listener, DrainDelay: s.options.drainDelay, Log: log, Registerer: s.registry,
	})
}

func (s *server) health(ctx context.Context, o health.Options) (*health.Server, error) {
	listener, err := listen(ctx, s.options.healthAddress)
	if err != nil {
		return nil, fmt.Errorf("--health-bind-address: %w", err)
	}
	o.Metrics = prometheus.Gatherers{metrics.Registry, s.registry}
	o.Log, o.Guard = s.log.WithName("health"), s.dev.before
	return health.New(listener, o), nil
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	return config.Listen(ctx, "tcp", address)
}
