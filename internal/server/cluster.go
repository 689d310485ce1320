package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/projectstatus"
	"github.com/phoneproof/phoneproof/controllers/request"
	"github.com/phoneproof/phoneproof/internal/leader"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/store/kubernetes"
	"github.com/phoneproof/phoneproof/internal/store/postgres"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// deletesPerSecond limits the rate of object deletions, well under the 20 changes per second that a cluster handles easily.
const deletesPerSecond = 10

// redeliveryFieldOwner owns the redelivery fields in a project's status. Conditions have another owner.
const redeliveryFieldOwner = client.FieldOwner("phoneproof-redelivery")

// cluster holds the parts of a serve process that need a cluster.
type cluster struct {
	*server

	source *object
	store  countedStore
	// One of these two is the store; the other is nil.
	objects  *kubernetes.Store
	database *postgres.Store
	// board is the board of the current term; nil without a term.
	board    atomic.Pointer[projectstatus.Board]
	inbound  *channels
	client   client.Client
	recorder eventRecorder
}

// eventRecorder emits Events, with annotations and without.
type eventRecorder interface {
	events.EventRecorder
	events.AnnotatedEventRecorder
}

// serveCluster serves a project of a cluster, from its VerificationRequest objects or from a database. Every replica serves the
// API and claims from the database; the holder of the project's lease runs the other loops.
func (s *server) serveCluster(ctx context.Context) error {
	config, err := ClusterConfig(s.options.Kubeconfig, "serve")
	if err != nil {
		return fmt.Errorf("configure client: %w", err)
	}
	s.apiServerURL = config.Host
	c, err := s.newCluster(config)
	if err != nil {
		return fmt.Errorf("set up cluster: %w", err)
	}
	clients, err := clientset.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clients.EventsV1()})
	defer broadcaster.Shutdown()
	recorder, ok := broadcaster.NewRecorder(c.client.Scheme(), "phoneproof-serve").(eventRecorder)
	if !ok {
		return errors.New("create recorder: it cannot annotate Events")
	}
	c.recorder = recorder

	elector, err := c.newElector(ctx, clients)
	if err != nil {
		return fmt.Errorf("set up elector: %w", err)
	}
	lead := startWhenReady(c.source, elector) // the lease belongs to the project
	record := manager.RunnableFunc(func(ctx context.Context) error { return broadcaster.StartRecordingToSinkWithContext(ctx) })
	loops := []manager.Runnable{lead, record}
	if c.database == nil {
		return s.run(ctx, c.store, c.source, c.inbound, append(loops, c.objects)...)
	}
	claims, err := s.newClaimLoop(ctx, c.database, c.maySend, c.recordAttempt)
	if err != nil {
		return fmt.Errorf("create claim loop: %w", err)
	}
	return s.run(ctx, c.store, c.source, c.inbound, append(loops, startWhenReady(c.source, claims))...)
}

// maySend reports whether events of the project may be sent: those of one that is suspended or deleted wait.
func (c *cluster) maySend() bool {
	project := c.source.Project()
	return project != nil && !project.Suspended()
}

func (s *server) newCluster(config *rest.Config) (*cluster, error) {
	namespace, name, _ := strings.Cut(s.options.Project, "/")
	key := types.NamespacedName{Namespace: namespace, Name: name}
	mounted, err := settings.ParseMounted(s.options.MountedSecrets)
	if err != nil {
		return nil, fmt.Errorf("--mounted-secrets: %w", err)
	}
	if s.options.Store == StoreKubernetes {
		config.Wrap(s.clock.wrapTransport) // applies to every client: each response carries the server's time
	}
	source, err := newObject(config, key, s.options.SecretsDir, mounted, clock.RealClock{}, s.log.WithName("settings"))
	if err != nil {
		return nil, fmt.Errorf("create settings: %w", err)
	}
	s.project, s.current = verification.NewCodeSpace(s.options.Project), source.Current
	c := &cluster{server: s, source: source}
	if s.options.Store == StorePostgreSQL {
		if c.database, err = s.openDatabase(); err != nil {
			return nil, fmt.Errorf("open database: %w", err)
		}
		c.store = c.database
	} else {
		c.objects, err = kubernetes.New(kubernetes.Options{
			Config: config, Project: s.options.Project, ProjectUID: source.UID, Clock: s.clock, Registerer: s.registry,
		})
		if err != nil {
			return nil, fmt.Errorf("create store: %w", err)
		}
		c.store = c.objects
	}
	scheme := runtime.NewScheme()
	if err := verifyv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register API types: %w", err)
	}
	if c.client, err = client.New(config, client.Options{Scheme: scheme, Mapper: verifyv1.Mapper()}); err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	if c.inbound, err = s.newChannels(c.store); err != nil {
		return nil, fmt.Errorf("create messenger channels: %w", err)
	}
	return c, nil
}

// newElector returns the elector of the project's lease, whose holder runs the loops.
func (c *cluster) newElector(ctx context.Context, clients clientset.Interface) (*leader.Elector, error) {
	identity, err := newIdentity()
	if err != nil {
		return nil, fmt.Errorf("name this candidate: %w", err)
	}
	manual, err := request.NewManualMetrics(c.registry)
	if err != nil {
		return nil, fmt.Errorf("register metrics of manual requests: %w", err)
	}
	namespace, name, _ := strings.Cut(c.project.Name(), "/")
	var (
		elector  *leader.Elector
		requests *request.Controller // of objects, for all terms
	)
	if c.objects != nil {
		loop, err := c.newRequestLoop(ctx, c.store, func() bool { return elector.HeldSafely() && c.maySend() })
		if err != nil {
			return nil, fmt.Errorf("create request loop: %w", err)
		}
		options := loop.Options
		options.DeletesPerSecond, options.Attempted = deletesPerSecond, c.recordAttempt
		requests = request.New(options)
	}
	elector, err = leader.New(leader.Options{
		Client: clients, Namespace: namespace, Name: leader.ProjectLease(name), Identity: identity,
		Times: c.options.Lease, Log: c.log.WithName("lease"), Owner: c.leaseOwner,
		Term: func(ctx context.Context) error { return c.runTerm(ctx, requests, manual) },
	})
	if err != nil {
		return nil, fmt.Errorf("create elector: %w", err)
	}
	return elector, nil
}

// leaseOwner returns the project as the owner of its lease; nil without a project.
func (c *cluster) leaseOwner() *metav1.OwnerReference {
	project := c.source.Project()
	if project == nil {
		return nil
	}
	return &metav1.OwnerReference{
		APIVersion: verifyv1.GroupVersion.String(), Kind: "VerificationProject", Name: project.Name, UID: project.UID,
	}
}

// runTerm runs the loops of the lease holder until ctx ends.
func (c *cluster) runTerm(ctx context.Context, requests *request.Controller, manual *request.ManualMetrics) error {
	if err := c.source.Wait(ctx); err != nil {
		return nil // the term ended before the project was available
	}
	board := projectstatus.NewBoard()
	c.board.Store(board)
	defer c.board.Store(nil)
	storage := c.checkDatabase
	var objects watchedObjects
	if c.objects != nil {
		objects, storage = c.objects, c.checkRoom
	}
	loops := newTermLoops(termOptions{
		Objects: objects, Settings: c.source.Subscribe,
		Request: requests,
		Manual: request.ManualOptions{
			Store: c.objects, Project: c.project, Settings: c.current, Metrics: manual, Log: c.log.WithName("manual"),
			Observer: c.inbound.service.Observer,
			Invite:   prepareMessage,
		},
		Redelivery: request.RedeliveryOptions{
			Projects: c.source, Store: c.store, Observed: c.observeRedelivery, Tell: c.recordRedelivery,
			Log: c.log.WithName("redelivery"),
		},
		Status: c.statusOptions(board, storage),
	})
	return runLoops(ctx, append(loops, newChannelLoops(c.callbackOptions(board))...))
}

func (c *cluster) observeRedelivery(ctx context.Context, wish string) error {
	return c.applyStatus(ctx, &verifyv1.VerificationProjectStatus{ObservedRedeliver: wish}, redeliveryFieldOwner)
}

// applyStatus applies the status fields of one owner and leaves the others unchanged.
func (c *cluster) applyStatus(ctx context.Context, status *verifyv1.VerificationProjectStatus, owner client.FieldOwner) error {
	namespace, name, _ := strings.Cut(c.project.Name(), "/")
	project := verifyv1.ApplyStatus(namespace, name, status)
	if err := c.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(project), owner, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply status: %w", err)
	}
	return nil
}

// recordRedelivery emits the Event of a redelivery. Its annotation says of which one: another may follow before the Event is stored.
func (c *cluster) recordRedelivery(project *verifyv1.VerificationProject, mark string, granted bool, message string) {
	kind, reason := corev1.EventTypeNormal, "RedeliveryScheduled"
	if !granted {
		kind, reason = corev1.EventTypeWarning, "RedeliveryRefused"
	}
	c.recorder.AnnotatedEventf(project, nil, map[string]string{verifyv1.RedeliverAnnotation: mark}, kind, reason, "Redeliver", "%s", message)
}
