package server

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/phoneproof/phoneproof/internal/boundedhttp"
	"github.com/phoneproof/phoneproof/internal/health"
	"github.com/phoneproof/phoneproof/internal/leader"
	"github.com/phoneproof/phoneproof/internal/panics"
	"github.com/phoneproof/phoneproof/internal/version"
)

// startupGrace is how long a process with a pool waits for all of its members to be ready once, before it is ready with some of them: a
// broken member must not keep new pods from replacing the old ones.
const startupGrace = 30 * time.Second

// pool serves several projects of a namespace in one process. Each has its own address, settings, store, limits and metrics; they
// share the process, its probes and one lease.
type pool struct {
	options      Options
	dependencies Dependencies
	config       *rest.Config
	recorder     eventRecorder
	elector      *leader.Elector
	terms        *leader.Shared
	registry     *prometheus.Registry
	members      []*member
	began        time.Time
	ending       atomic.Bool
}

// servePool serves the members of a pool until ctx ends.
func servePool(ctx context.Context, o Options, d Dependencies) error {
	config, err := ClusterConfig(o.Kubeconfig, "serve")
	if err != nil {
		return fmt.Errorf("configure client: %w", err)
	}
	clients, err := clientset.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	recorder, record, err := newRecorder(clients)
	if err != nil {
		return fmt.Errorf("create recorder: %w", err)
	}
	p := &pool{
		options: o, dependencies: d, config: config, recorder: recorder, terms: leader.NewShared(d.Clock),
		registry: prometheus.NewRegistry(), began: d.Clock.Now(),
	}
	if p.elector, err = p.newElector(clients); err != nil {
		return fmt.Errorf("set up elector: %w", err)
	}
	for _, m := range o.Members {
		one := &member{pool: p, Member: m}
		one.log = d.Log.WithValues("project", one.name())
		p.members = append(p.members, one)
	}
	connections, err := p.shareConnections()
	if err != nil {
		return err
	}
	// The probes are those of the process, so they are built like the ones of a server of one project.
	process := newServer(o, d)
	listener, err := listen(ctx, "--health-bind-address", o.HealthAddress, d.HealthListener)
	if err != nil {
		return fmt.Errorf("open listener: %w", err)
	}
	probes := process.newHealth(listener, health.Options{
		Metrics: prometheus.Gatherers{metrics.Registry, p.registry}, Projects: p.listProblems, Serving: p.checkServing,
		Check: func(context.Context) error { return nil }, // each member checks its own store
	})
	d.Log.Info("serving", "pool", o.Pool, "members", len(p.members), "connectionsOfEach", connections, "version", version.Version(),
		"healthAddress", listener.Addr().String())
	return RunBehind(ctx, manager.RunnableFunc(p.serveMembers), append(d.Runnables, p.elector, record, probes)...)
}

// newElector returns the elector of the pool's lease. The lease has no owner: no member may take it along.
func (p *pool) newElector(clients clientset.Interface) (*leader.Elector, error) {
	identity, err := newIdentity()
	if err != nil {
		return nil, fmt.Errorf("name this candidate: %w", err)
	}
	namespace, name := p.options.poolName()
	elector, err := leader.New(leader.Options{
		Client: clients, Namespace: namespace, Name: leader.PoolLease(name), Identity: identity,
		Times: p.options.Lease, Log: p.dependencies.Log.WithName("lease"), Term: p.terms.Run,
	})
	if err != nil {
		return nil, fmt.Errorf("create elector: %w", err)
	}
	return elector, nil
}

// shareConnections returns how many connections each member may have, or an error if these are too few to serve a project.
func (p *pool) shareConnections() (int64, error) {
	each := boundedhttp.ShareConnections(p.dependencies.ConnectionBudget, len(p.members))
	if each < boundedhttp.MinConnections {
		return 0, fmt.Errorf("--member: the memory limit leaves %d connections to each of %d projects, fewer than %d: raise the limit, "+
			"or divide the pool", each, len(p.members), boundedhttp.MinConnections)
	}
	return each, nil
}

// serveMembers serves all members until ctx ends and they have drained. It returns the errors of those that did not drain in time.
func (p *pool) serveMembers(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { p.ending.Store(true) })()
	errs := make([]error, len(p.members))
	var serving sync.WaitGroup
	for i, m := range p.members {
		serving.Go(func() {
			leader.RepeatUntilEnd(ctx, p.dependencies.Clock, func(ctx context.Context) {
				errs[i] = m.judgeEnd(ctx, panics.ToError(func() error { return m.serve(ctx) }))
			})
		})
	}
	serving.Wait()
	return errors.Join(errs...)
}

// maxRunning returns how many requests of a member may run at once: one processor is left to the others, if there are others and several
// processors.
func (p *pool) maxRunning() int {
	if len(p.members) == 1 {
		return 0
	}
	return max(1, runtime.GOMAXPROCS(0)-1)
}

// checkServing returns why the process should get no traffic; nil if it should.
func (p *pool) checkServing() error {
	if p.ending.Load() {
		return errors.New("draining")
	}
	ready, awaited := 0, 0
	for _, m := range p.members {
		if m.updateReady() {
			ready++
		}
		if m.isAwaited() {
			awaited++
		}
	}
	return checkMembers(ready, awaited, p.dependencies.Clock.Since(p.began))
}

// checkMembers returns why a process that began some time ago should get no traffic, by how many of its members are ready, and how many
// never were. A member that is not ready answers for itself, and the others go on.
func checkMembers(ready, awaited int, age time.Duration) error {
	switch {
	case ready == 0:
		return errors.New("no project of the pool is ready")
	case awaited > 0 && age < startupGrace:
		return fmt.Errorf("%d projects of the pool have not been ready yet", awaited)
	default:
		return nil
	}
}

// listProblems returns the problems of the members, by name.
func (p *pool) listProblems() map[string]health.Problems {
	all := map[string]health.Problems{}
	for _, m := range p.members {
		all[m.Project] = m.problems()
	}
	return all
}
