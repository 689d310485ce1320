package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/phoneproof/phoneproof/internal/health"
	"github.com/phoneproof/phoneproof/internal/httpapi"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// member serves one project of a pool.
type member struct {
	Member

	pool *pool
	// serving is the present attempt to serve; nil between two.
	serving  atomic.Pointer[serving]
	wasReady atomic.Bool
}

// serving is one attempt to serve a project of a pool: it begins with new parts, and fails without those of other projects.
type serving struct {
	*cluster

	member    *member
	api       atomic.Pointer[httpapi.Server] // nil before it starts
	readiness *health.Readiness
}

// serve serves the project until ctx ends, or until a part of it fails.
func (m *member) serve(ctx context.Context) {
	s, err := m.newServing()
	if err == nil {
		m.serving.Store(s)
		err = s.run(ctx)
		m.serving.Store(nil)
	}
	if err != nil {
		m.pool.dependencies.Log.Error(err, "project of the pool is not served; it is tried again", "member", m.Project)
	}
}

// name returns NAMESPACE/NAME of the project.
func (m *member) name() string {
	namespace, _ := m.pool.options.poolName()
	return namespace + "/" + m.Project
}

func (m *member) newServing() (*serving, error) {
	o, d := m.pool.options, m.pool.dependencies
	o.Pool, o.Members, o.Project, o.Address, o.Store, o.LogoFile = "", nil, m.name(), m.Address, m.Store, m.LogoFile
	d.Log = d.Log.WithValues("member", m.Project)
	if d.RequestLog != nil {
		d.RequestLog = d.RequestLog.WithAttrs([]slog.Attr{slog.String("member", m.Project)})
	}
	d.ConnectionBudget /= int64(len(m.pool.members)) // a flood of one member's connections must leave the others theirs
	d.MaxRunning = m.pool.maxRunning()
	c, err := newServer(o, d).newCluster(rest.CopyConfig(m.pool.config), m.pool.recorder)
	if err != nil {
		return nil, fmt.Errorf("set up cluster: %w", err)
	}
	s := &serving{cluster: c, member: m}
	s.readiness = health.NewReadiness(health.ReadinessOptions{Check: c.store.Ready, Serving: s.checkServing, Log: c.log.WithName("health")})
	return s, nil
}

// run serves until ctx ends. The parts behind the API end after it.
func (s *serving) run(ctx context.Context) error {
	term, err := s.newTerm(ctx, s.member.pool.elector.HeldSafely)
	if err != nil {
		return fmt.Errorf("create loops of the term: %w", err)
	}
	loops, err := s.newStoreLoops(ctx)
	if err != nil {
		return fmt.Errorf("create loops of the store: %w", err)
	}
	lead := manager.RunnableFunc(func(ctx context.Context) error {
		if s.source.Wait(ctx) == nil {
			s.member.pool.terms.Work(ctx, s.log.WithName("lease"), term)
		}
		return nil
	})
	return RunBehind(ctx, manager.RunnableFunc(s.serveAPI), append(slices.Concat(loops, s.inbound.replies), lead, s.source, s.readiness)...)
}

// serveAPI serves the API as soon as the project is available. Before that nothing listens, so that no client waits for an answer.
func (s *serving) serveAPI(ctx context.Context) error {
	if s.source.Wait(ctx) != nil {
		return nil // the process ended before
	}
	if err := s.registerInfo(); err != nil {
		return fmt.Errorf("register build info: %w", err)
	}
	listener, err := listen(ctx, "address of the member", s.options.Address, nil)
	if err != nil {
		return fmt.Errorf("open listener: %w", err)
	}
	api, err := s.newAPI(listener, s.inbound.service, s.inbound.hooks)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	// Now its metrics are complete: a collector that is added later would have none that the registry knows.
	labeled := prometheus.WrapCollectorWith(prometheus.Labels{"project": s.member.Project}, s.registry)
	if err := s.member.pool.registry.Register(labeled); err != nil {
		return errors.Join(fmt.Errorf("register metrics: %w", err), listener.Close())
	}
	defer s.member.pool.registry.Unregister(labeled)
	s.log.Info("serving", "store", s.options.Store, "address", listener.Addr().String())
	s.api.Store(api)
	if err := api.Start(ctx); err != nil {
		return fmt.Errorf("serve API: %w", err)
	}
	return nil
}

// checkServing returns why the project is not served; nil if it is.
func (s *serving) checkServing() error {
	switch api := s.api.Load(); {
	case api == nil || s.current() == nil:
		return settings.ErrNoProject
	case api.Draining():
		return errors.New("draining")
	default:
		return nil
	}
}

// isReady reports whether requests about the project are answered now.
func (m *member) isReady() bool {
	s := m.serving.Load()
	ready := s != nil && s.readiness.Err() == nil
	if ready {
		m.wasReady.Store(true)
	}
	return ready
}

// problems returns what is wrong with the project.
func (m *member) problems() health.Problems {
	s := m.serving.Load()
	if s == nil {
		return health.NewProblems(nil, settings.ErrNoProject)
	}
	refused := s.source.LastError()
	if refused == nil && s.current() == nil {
		refused = settings.ErrNoProject
	}
	return health.NewProblems(s.source.Problems(), refused)
}
