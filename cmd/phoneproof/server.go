package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/phoneproof/phoneproof/controllers/request"
	"github.com/phoneproof/phoneproof/internal/channel/telegram"
	"github.com/phoneproof/phoneproof/internal/channel/whatsapp"
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

// serve runs the server until ctx ends: first the API drains, then everything else stops.
func serve(ctx context.Context, o serveOptions, log logr.Logger) error {
	source, err := settings.NewFile(o.projectFile, o.secretsDir, clock.RealClock{}, log.WithName("settings"))
	if err != nil {
		return err
	}
	project := source.Current().Project
	store := memory.NewBackend(memory.Options{}).Open(project)

	s := server{options: o, current: source.Current, registry: prometheus.NewRegistry(), log: log}
	loop, err := s.requestLoop(ctx, store)
	if err != nil {
		return err
	}
	api, err := s.api(ctx, verification.NewService(verification.NewProject(project), store))
	if err != nil {
		return err
	}
	probes, err := s.health(ctx, health.Options{
		Problems: source.Problems,
		Ready: func(ctx context.Context) error {
			if api.Draining() {
				return errors.New("draining")
			}
			return store.Ready(ctx)
		},
	})
	if err != nil {
		return err
	}
	log.Info("serving", "project", project, "version", version.Version(), "store", o.store, "address", o.address)
	return run(ctx, api, source, loop, probes)
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

// server makes the parts of a serve process from what they share.
type server struct {
	options  serveOptions
	current  func() *settings.Settings
	registry *prometheus.Registry
	log      logr.Logger
}

// requestLoop returns the loop over a store whose workers compete.
func (s *server) requestLoop(ctx context.Context, store *memory.Store) (runnable, error) {
	guard, err := s.options.webhook.guard(ctx)
	if err != nil {
		return nil, err
	}
	counted, err := request.NewMetrics(s.registry)
	if err != nil {
		return nil, err
	}
	namespace, _, _ := strings.Cut(s.current().Project, "/")
	loop := request.New(request.Options{
		Store: store, Settings: s.current, Namespace: namespace, Metrics: counted, Log: s.log.WithName("requests"),
		Sender: webhook.NewSender(webhook.Options{Guard: guard, Version: version.Version(), Registerer: s.registry}),
	})
	return runnableFunc(func(ctx context.Context) error { return loop.Run(ctx, loop.Claims(store)) }), nil
}

func (s *server) api(ctx context.Context, service *verification.Service) (*httpapi.Server, error) {
	log := s.log.WithName("http")
	api, err := httpapi.New(httpapi.Options{
		Settings: s.current, Service: service, Invite: invite, Log: log, Registerer: s.registry,
	})
	if err != nil {
		return nil, err
	}
	listener, err := listen(ctx, s.options.address)
	if err != nil {
		return nil, fmt.Errorf("--bind-address: %w", err)
	}
	return httpapi.NewServer(httpapi.ServerOptions{
		Handler: api, Listener: listener, DrainDelay: s.options.drainDelay, Log: log, Registerer: s.registry,
	})
}

func (s *server) health(ctx context.Context, o health.Options) (*health.Server, error) {
	listener, err := listen(ctx, s.options.healthAddress)
	if err != nil {
		return nil, fmt.Errorf("--health-bind-address: %w", err)
	}
	o.Metrics = prometheus.Gatherers{metrics.Registry, s.registry}
	o.Log = s.log.WithName("health")
	return health.New(listener, o), nil
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	return config.Listen(ctx, "tcp", address)
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
