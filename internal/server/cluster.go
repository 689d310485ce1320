package server

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/google/uuid"
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
	verifyv1ac "github.com/phoneproof/phoneproof/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers"
	"github.com/phoneproof/phoneproof/controllers/projectstatus"
	"github.com/phoneproof/phoneproof/controllers/request"
	"github.com/phoneproof/phoneproof/internal/leader"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/store/kubernetes"
	"github.com/phoneproof/phoneproof/internal/store/postgres"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// deletesPerSecond paces the clean-up of objects, well under the 20 changes a second that a cluster takes with ease.
const deletesPerSecond = 10

// redeliveryFieldOwner names what serve writes of a project's status about redelivery; its conditions have another.
const redeliveryFieldOwner = client.FieldOwner("phoneproof-redelivery")

// cluster are the parts of a serve process that belong to a cluster.
type cluster struct {
	*server

	source *settings.Object
	store  countedStore
	// One of these is the store.
	objects  *kubernetes.Store
	database *postgres.Store
	// board is that of the present term; nil without one.
	board    atomic.Pointer[projectstatus.Board]
	inbound  *channels
	client   client.Client
	recorder events.EventRecorder
}

// serveCluster serves a project of a cluster, from its VerificationRequest objects or from a database. Every replica
// answers; the holder of the project's lease runs the loops, but for what is claimed from a database by all.
func (s *server) serveCluster(ctx context.Context) error {
	config, err := ClusterConfig(s.options.Kubeconfig, "serve")
	if err != nil {
		return err
	}
	s.apiServerURL = config.Host
	c, err := s.newCluster(config)
	if err != nil {
		return err
	}
	clients, err := clientset.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clients.EventsV1()})
	defer broadcaster.Shutdown()
	c.recorder = broadcaster.NewRecorder(c.client.Scheme(), "phoneproof-serve")

	campaign, err := c.campaign(ctx, clients)
	if err != nil {
		return err
	}
	lead := manager.RunnableFunc(func(ctx context.Context) error {
		if err := c.source.Wait(ctx); err != nil { // the lease belongs to the project
			return nil //nolint:nilerr // the process was stopped before there was anything to lead
		}
		return campaign.Start(ctx)
	})
	record := manager.RunnableFunc(func(ctx context.Context) error { return broadcaster.StartRecordingToSinkWithContext(ctx) })
	loops := []manager.Runnable{lead, record}
	if c.database == nil {
		return s.run(ctx, c.store, c.source, c.inbound, append(loops, c.objects)...)
	}
	claims, err := s.claims(ctx, c.database, func() bool { return c.source.UID() != "" }, c.attempted)
	if err != nil {
		return err
	}
	return s.run(ctx, c.store, c.source, c.inbound, append(loops, c.database, claims)...)
}

func (s *server) newCluster(config *rest.Config) (*cluster, error) {
	namespace, name, _ := strings.Cut(s.options.Project, "/")
	key := types.NamespacedName{Namespace: namespace, Name: name}
	mounted, err := settings.ParseMounted(s.options.MountedSecrets)
	if err != nil {
		return nil, fmt.Errorf("--mounted-secrets: %w", err)
	}
	if s.options.Store == StoreKubernetes {
		config.Wrap(s.clock.RoundTripper) // of every client: each answer tells the time
	}
	source, err := settings.NewObject(config, key, s.options.SecretsDir, mounted, clock.RealClock{}, s.log.WithName("settings"))
	if err != nil {
		return nil, err
	}
	s.project, s.current = verification.NewCodeSpace(s.options.Project), source.Current
	c := &cluster{server: s, source: source}
	if s.options.Store == StorePostgreSQL {
		if c.database, err = s.database(); err != nil {
			return nil, err
		}
		c.store = c.database
	} else {
		c.objects, err = kubernetes.New(kubernetes.Options{
			Config: config, Project: s.options.Project, ProjectUID: source.UID, Clock: s.clock, Registerer: s.registry,
		})
		if err != nil {
			return nil, err
		}
		c.store = c.objects
	}
	scheme := runtime.NewScheme()
	if err := verifyv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("know our own kinds: %w", err)
	}
	if c.client, err = client.New(config, client.Options{Scheme: scheme, Mapper: verifyv1.Mapper()}); err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	if c.inbound, err = s.channels(c.store); err != nil {
		return nil, err
	}
	return c, nil
}

// campaign returns the candidacy for the project's lease, whose holder runs the loops.
func (c *cluster) campaign(ctx context.Context, clients clientset.Interface) (*leader.Elector, error) {
	identity, err := newIdentity()
	if err != nil {
		return nil, err
	}
	manual, err := request.NewManualMetrics(c.registry)
	if err != nil {
		return nil, err
	}
	namespace, name, _ := strings.Cut(c.project.Name(), "/")
	var (
		campaign *leader.Elector
		requests *request.Controller // of objects, for all terms
	)
	if c.objects != nil {
		loop, err := c.requestLoop(ctx, c.store, func() bool { return campaign.HeldSafely() && c.source.UID() != "" })
		if err != nil {
			return nil, err
		}
		options := loop.Options
		options.DeletesPerSecond, options.Attempted = deletesPerSecond, c.attempted
		requests = request.New(options)
	}
	campaign, err = leader.New(leader.Options{
		Client: clients, Namespace: namespace, Name: leaseName(name), Identity: identity,
		Times: c.options.Lease, Log: c.log.WithName("lease"), Owner: c.owner,
		Term: func(ctx context.Context) error { return c.term(ctx, requests, manual) },
	})
	return campaign, err
}

// owner returns the project as the owner of its lease; nil while there is none.
func (c *cluster) owner() *metav1.OwnerReference {
	project := c.source.Project()
	if project == nil {
		return nil
	}
	return &metav1.OwnerReference{
		APIVersion: verifyv1.GroupVersion.String(), Kind: "VerificationProject", Name: project.Name, UID: project.UID,
	}
}

// term is what the holder of the lease does.
func (c *cluster) term(ctx context.Context, requests *request.Controller, manual *request.ManualMetrics) error {
	if err := c.source.Wait(ctx); err != nil {
		return nil // the term ended before there was anything to do
	}
	board := projectstatus.NewBoard()
	c.board.Store(board)
	defer c.board.Store(nil)
	storage := c.databaseServes
	var objects controllers.Objects
	if c.objects != nil {
		objects, storage = c.objects, c.room
	}
	loops := controllers.Term(controllers.TermOptions{
		Objects: objects, Settings: c.source.Subscribe,
		Request: requests,
		Manual: request.ManualOptions{
			Store: c.objects, Project: c.project, Settings: c.current, Metrics: manual, Log: c.log.WithName("manual"),
			Observer: c.inbound.service.Observer,
			Invite: func(s *settings.Settings, m verification.Method, code verification.Code) (link, text string) {
				invitation := invite(s, &verification.Request{Method: m, DisplayName: s.DisplayName}, code)
				return invitation.Link, invitation.ExpectedText
			},
		},
		Redelivery: request.RedeliveryOptions{
			Projects: c.source, Store: c.store, Observed: c.observeRedelivery, Tell: c.tellRedelivery,
			Log: c.log.WithName("redelivery"),
		},
		Status: c.report(board, storage),
	})
	return controllers.Run(ctx, append(loops, controllers.Channels(c.registration(board))...))
}

func (c *cluster) observeRedelivery(ctx context.Context, wish string) error {
	return c.applyStatus(ctx, verifyv1ac.VerificationProjectStatus().WithObservedRedeliver(wish), redeliveryFieldOwner)
}

// applyStatus makes a part of the project's status what its owner says, and nothing else.
func (c *cluster) applyStatus(
	ctx context.Context, status *verifyv1ac.VerificationProjectStatusApplyConfiguration, owner client.FieldOwner,
) error {
	namespace, name, _ := strings.Cut(c.project.Name(), "/")
	return c.client.Status().Apply(ctx, verifyv1ac.VerificationProject(name, namespace).WithStatus(status), owner, client.ForceOwnership)
}

func (c *cluster) tellRedelivery(project *verifyv1.VerificationProject, granted bool, message string) {
	kind, reason := corev1.EventTypeNormal, "RedeliveryScheduled"
	if !granted {
		kind, reason = corev1.EventTypeWarning, "RedeliveryRefused"
	}
	c.recorder.Eventf(project, nil, kind, reason, "Redeliver", "%s", message)
}

// leaseName returns the name of a project's lease, which has at most 253 characters as the project's has.
func leaseName(project string) string {
	const prefix = "phoneproof-"
	if len(prefix)+len(project) <= 253 {
		return prefix + project
	}
	return prefix + uuid.NewSHA1(uuid.NameSpaceDNS, []byte(project)).String()
}
