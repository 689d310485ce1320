// Package operator is an operator process: it wires the controllers of projects to the API server, and serves probes and
// metrics. It imports nothing that simulates a messenger.
package operator

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/phoneproof/phoneproof/controllers/project"
	"github.com/phoneproof/phoneproof/controllers/project/render"
	"github.com/phoneproof/phoneproof/internal/server"
	"github.com/phoneproof/phoneproof/internal/version"
)

// leaseName is the name of the lease whose holder works.
const leaseName = "phoneproof-operator"

// Run runs the operator until ctx ends.
func Run(ctx context.Context, o Options, log logr.Logger) error {
	config, err := server.ClusterConfig(o.Kubeconfig, "operator")
	if err != nil {
		return fmt.Errorf("configure client: %w", err)
	}
	rendering, err := o.renderOptions()
	if err != nil {
		return fmt.Errorf("configure pods: %w", err)
	}
	watched, err := o.newNamespaces(config, log.WithName("namespaces"))
	if err != nil {
		return fmt.Errorf("probe namespaces: %w", err)
	}
	cached, left := watched.divideWatched(ctx)
	mgr, err := o.newManager(ctx, config, watched, log)
	if err != nil {
		return fmt.Errorf("set up manager: %w", err)
	}
	controller := project.New(project.Options{
		Render: rendering, Permissions: o.Permissions, Namespaces: cached, LeftOut: left, MaxUnreadyRollouts: o.MaxUnreadyRollouts,
		Log: log.WithName("project"),
	})
	if err := controller.Register(ctx, mgr); err != nil {
		return fmt.Errorf("register controller of projects: %w", err)
	}
	if err := metrics.Registry.Register(project.NewMetrics(mgr.GetClient(), log.WithName("metrics"))); err != nil {
		return fmt.Errorf("register metrics of projects: %w", err)
	}
	if err := metrics.Registry.Register(watched.gauge); err != nil {
		return fmt.Errorf("register metrics of namespaces: %w", err)
	}
	log.Info("operating", "version", version.Version(), "image", o.Image, "namespaces", o.Namespaces)
	ctx, end := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer end()
	if len(watched.watched) > 0 { // not by the manager, which begins with such work once the cache is filled
		group.Go(func() {
			watched.followUnread(ctx, func(ctx context.Context, old bool) bool {
				return !isFilled(ctx, mgr.GetCache()) || old && controller.IsGatewayUnread()
			}, end)
		})
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the operator: %w", err)
	}
	return nil
}

// renderOptions returns what the flags say of the projects' pods.
func (o *Options) renderOptions() (render.Options, error) {
	allow, deny, err := o.Webhook.Rules()
	if err != nil {
		return render.Options{}, fmt.Errorf("read webhook rules: %w", err)
	}
	return render.Options{
		Image: o.Image, PullPolicy: corev1.PullPolicy(o.PullPolicy), PullSecrets: o.PullSecrets,
		LogFormat: o.ServerLog.Format, LogLevel: o.ServerLog.Level,
		NamespacedRoles: len(o.Namespaces) > 0,
		WhatsAppURL:     o.Platforms.GraphURL, TelegramURL: o.Platforms.BotAPIURL, GatewayURL: o.Platforms.GatewayURL,
		SimulatorURL: o.Platforms.SimulatorURL,
		WebhookAllow: allow, WebhookDeny: deny,
	}, nil
}

func (o *Options) newManager(ctx context.Context, config *rest.Config, watched *namespaces, log logr.Logger) (manager.Manager, error) {
	scheme, err := project.Scheme()
	if err != nil {
		return nil, fmt.Errorf("make scheme: %w", err)
	}
	caches, err := project.CacheOptions(watched.cached)
	if err != nil {
		return nil, fmt.Errorf("configure cache: %w", err)
	}
	lock, err := o.newLock(config)
	if err != nil {
		return nil, fmt.Errorf("configure lease: %w", err)
	}
	mgr, err := manager.New(config, manager.Options{
		Scheme: scheme, Cache: caches, Client: project.ClientOptions(), Logger: log,
		Metrics: metricsserver.Options{BindAddress: noPort}, HealthProbeBindAddress: noPort, // see addPorts
		LeaderElection: o.LeaderElect, LeaderElectionResourceLockInterface: lock,
		LeaseDuration: &o.Lease.Duration, RenewDeadline: &o.Lease.RenewDeadline, RetryPeriod: &o.Lease.RetryPeriod,
		// The process ends with the manager, so nothing goes on once the next holder begins.
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, fmt.Errorf("make manager: %w", err)
	}
	if err := o.addPorts(ctx, mgr, config, watched, log); err != nil {
		return nil, fmt.Errorf("add ports: %w", err)
	}
	return mgr, nil
}

// newLock returns the lease that operators compete for; nil if they do not. It emits no Events, which would need rights in
// the core group.
func (o *Options) newLock(config *rest.Config) (resourcelock.Interface, error) {
	if !o.LeaderElect {
		return nil, nil
	}
	namespace, err := o.leaseNamespace()
	if err != nil {
		return nil, fmt.Errorf("find namespace of the lease: %w", err)
	}
	config = rest.AddUserAgent(config, "lease")
	config.Timeout = max(o.Lease.RenewDeadline/2, time.Second) // one call that hangs must not cost the lease
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client for the lease: %w", err)
	}
	hostname, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name this holder of the lease: %w", err)
	}
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: leaseName},
		Client:     clients.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: hostname + "_" + uuid.NewString()},
	}, nil
}

// leaseNamespace returns the one of --leader-elect-namespace, or the pod's own.
func (o *Options) leaseNamespace() (string, error) {
	const ofPod = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	if o.LeaderNamespace != "" {
		return o.LeaderNamespace, nil
	}
	namespace, err := os.ReadFile(ofPod)
	if err != nil {
		return "", fmt.Errorf("--leader-elect-namespace is required outside a pod: %w", err)
	}
	return string(namespace), nil
}
