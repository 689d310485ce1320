package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/phoneproof/phoneproof/internal/health"
	"github.com/phoneproof/phoneproof/internal/httpapi"
	"github.com/phoneproof/phoneproof/internal/leader"
	"github.com/phoneproof/phoneproof/internal/panics"
)

// errNotServed ends an attempt to serve a project that was deleted or suspended. The next one follows at once, and waits until the project
// may be served.
var errNotServed = errors.New("the project was deleted or suspended")

// member serves one project of a pool.
type member struct {
	Member

	pool *pool
	log  logr.Logger
	// serving is the present attempt to serve; nil between two.
	serving  atomic.Pointer[serving]
	wasReady atomic.Bool
}

// serving is one attempt to serve a project of a pool: it begins with new parts, and fails without those of other projects.
type serving struct {
	*cluster

	member *member
	// started is closed when the project may be served.
	started   chan struct{}
	api       atomic.Pointer[httpapi.Server] // nil before it starts
	readiness *health.Readiness
}

// serve serves the project whenever it may be served, until ctx ends, or until a part of it fails.
func (m *member) serve(ctx context.Context) error {
	for {
		if err := m.serveOnce(ctx); !errors.Is(err, errNotServed) || ctx.Err() != nil {
			return err
		}
	}
}

// serveOnce serves the project until ctx ends, a part of it fails, or it is not to be served any more.
func (m *member) serveOnce(ctx context.Context) error {
	defer m.serving.Store(nil)
	s, err := m.newServing()
	if err != nil {
		return err
	}
	m.serving.Store(s)
	return s.run(ctx)
}

// judgeEnd logs why an attempt to serve ended that is followed by another one. It returns the error of the last one, unless that only ended
// with the process, or with the project.
func (m *member) judgeEnd(ctx context.Context, err error) error {
	switch {
	case err == nil || errors.Is(err, errNotServed):
		return nil
	case ctx.Err() == nil:
		m.log.Error(err, "serve project failed, will retry")
		return nil
	case errors.Is(err, context.Canceled):
		return nil
	default:
		return err
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
	d.Log = m.log
	if d.RequestLog != nil {
		d.RequestLog = d.RequestLog.WithAttrs([]slog.Attr{slog.String("project", m.name())})
	}
	d.ConnectionBudget /= int64(len(m.pool.members)) // a flood of one member's connections must leave the others theirs
	d.MaxRunning = m.pool.maxRunning()
	c, err := newServer(o, d).newCluster(rest.CopyConfig(m.pool.config), m.pool.recorder)
	if err != nil {
		return nil, fmt.Errorf("set up cluster: %w", err)
	}
	s := &serving{cluster: c, member: m, started: make(chan struct{})}
	s.readiness = health.NewReadiness(health.ReadinessOptions{Check: c.store.Ready, Serving: s.checkServing, Log: c.log.WithName("health")})
	return s, nil
}

// run serves until ctx ends, or the project is not to be served any more. The parts behind the API end after it.
func (s *serving) run(ctx context.Context) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	term, err := s.newTerm(ctx, s.member.pool.elector.HeldSafely)
	if err != nil {
		return fmt.Errorf("create loops of the term: %w", err)
	}
	loops, err := s.newStoreLoops(ctx, s.awaitStart)
	if err != nil {
		return fmt.Errorf("create loops of the store: %w", err)
	}
	lead := manager.RunnableFunc(func(ctx context.Context) error {
		if s.awaitStart(ctx) == nil {
			s.member.pool.terms.Work(ctx, s.log.WithName("lease"), func(ctx context.Context) error {
				return panics.ToError(func() error { return term(ctx) })
			})
		}
		return nil
	})
	check := manager.RunnableFunc(func(ctx context.Context) error {
		go func() { _ = s.readiness.Start(ctx) }() // not awaited: a check that hangs must not delay the end
		<-ctx.Done()
		return nil
	})
	follow := manager.RunnableFunc(func(ctx context.Context) error {
		s.followProject(ctx, end)
		return nil
	})
	own := []manager.Runnable{lead, check, follow, s.source}
	err = RunBehind(ctx, manager.RunnableFunc(s.serveAPI), slices.Concat(loops, s.inbound.replies, own)...)
	if err == nil && errors.Is(context.Cause(ctx), errNotServed) {
		return errNotServed
	}
	return err
}

// followProject has the project served once it is available, neither refused nor suspended, and the attempt ended when it is suspended or
// deleted. Pods of its own would be deleted then; those of a pool go on. No other part decides that by itself, so all of them agree.
func (s *serving) followProject(ctx context.Context, end context.CancelCauseFunc) {
	changes, cancel := s.source.Observe()
	defer cancel()
	if s.source.Wait(ctx) != nil {
		return // the process ended before
	}
	for served := types.UID(""); ; {
		switch project := s.source.Project(); {
		case served == "" && project != nil && !project.Suspended() && s.source.LastError() == nil:
			served = project.UID
			close(s.started)
		case served != "" && (project == nil || project.UID != served || project.Suspended()):
			s.log.Info("the project was suspended or deleted")
			end(errNotServed)
			return
		}
		select {
		case <-changes:
		case <-ctx.Done():
			return
		}
	}
}

// awaitStart returns when the project may be served, or ctx's error.
func (s *serving) awaitStart(ctx context.Context) error {
	select {
	case <-s.started:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// serveAPI serves the API as soon as the project is available. Before that nothing listens, so that no client waits for an answer.
func (s *serving) serveAPI(ctx context.Context) error {
	if s.awaitStart(ctx) != nil {
		return nil // the process ended before
	}
	if err := s.registerInfo(); err != nil {
		return fmt.Errorf("register build info: %w", err)
	}
	listener := s.listenPatiently(ctx)
	if listener == nil {
		return nil // the process ended before
	}
	api, err := s.newAPI(listener, s.inbound.service, s.inbound.hooks)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	// Not before all its collectors are registered: to unregister it later, Prometheus compares what it describes then.
	labeled := prometheus.WrapCollectorWith(prometheus.Labels{"project": s.member.Project}, guardedCollector{s.registry, s.log})
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

// listenPatiently opens the listener, and tries again while its address is in use: the loops of the project go on meanwhile, because this
// process may be the one that has the lease. It returns nil when ctx ends before.
func (s *serving) listenPatiently(ctx context.Context) (listener net.Listener) {
	ctx, done := context.WithCancel(ctx)
	defer done()
	leader.RepeatUntilEnd(ctx, s.dependencies.Clock, func(ctx context.Context) {
		var err error
		if listener, err = listen(ctx, "address of the member", s.options.Address, nil); err != nil {
			s.log.Error(err, "listen failed, will retry")
			return
		}
		done()
	})
	return listener
}

// checkServing returns why the project is not served; nil if it is.
func (s *serving) checkServing() error {
	switch api := s.api.Load(); {
	case api == nil || s.current() == nil:
		return errNoProject
	case api.Draining():
		return errors.New("draining")
	default:
		return nil
	}
}

// updateReady records whether requests about the project are answered now, and returns it.
func (m *member) updateReady() bool {
	s := m.serving.Load()
	ready := s != nil && s.readiness.Err() == nil
	if ready {
		m.wasReady.Store(true)
	}
	return ready
}

// isAwaited reports whether the project was never ready and may be soon: one that is suspended is not.
func (m *member) isAwaited() bool {
	s := m.serving.Load()
	return !m.wasReady.Load() && (s == nil || !s.isSuspended())
}

// problems returns what is wrong with the project.
func (m *member) problems() health.Problems {
	s := m.serving.Load()
	if s == nil {
		return health.NewProblems(nil, errNoProject)
	}
	refused := s.source.LastError()
	if refused == nil && s.current() == nil {
		refused = errNoProject
	}
	return health.NewProblems(s.source.Problems(), refused)
}

// guardedCollector collects the metrics of a project. A panic loses those of the project, and not the process.
type guardedCollector struct {
	*prometheus.Registry

	log logr.Logger
}

// Collect implements prometheus.Collector.
func (c guardedCollector) Collect(metrics chan<- prometheus.Metric) {
	defer panics.Recover(func(failure error) { c.log.Error(failure, "collect metrics failed") })
	c.Registry.Collect(metrics)
}
