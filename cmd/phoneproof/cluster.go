package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	verifyv1ac "github.com/phoneproof/phoneproof/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers"
	"github.com/phoneproof/phoneproof/controllers/draft"
	"github.com/phoneproof/phoneproof/controllers/redelivery"
	"github.com/phoneproof/phoneproof/controllers/request"
	"github.com/phoneproof/phoneproof/internal/lease"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/store/kubernetes"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/internal/version"
)

// deletesPerSecond paces the clean-up of objects, well under the 20 changes a second that a cluster takes with ease.
const deletesPerSecond = 10

// redeliveryFieldOwner names what serve writes of a project's status about redelivery; its conditions have another.
const redeliveryFieldOwner = client.FieldOwner("phoneproof-redelivery")

// cluster are the parts of a serve process that belong to a cluster.
type cluster struct {
	*server

	source   *settings.Object
	store    *kubernetes.Store
	client   client.Client
	recorder events.EventRecorder
}

// serveCluster serves a project of a cluster from its VerificationRequest objects. Every replica answers; the holder of
// the project's lease runs the loops.
func (s *server) serveCluster(ctx context.Context) error {
	config, err := s.options.restConfig()
	if err != nil {
		return err
	}
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
	record := runnableFunc(func(ctx context.Context) error { return broadcaster.StartRecordingToSinkWithContext(ctx) })
	return s.run(ctx, c.store, c.source, c.store, campaign, record)
}

// restConfig returns how to reach the API server: by --kubeconfig, or as a pod.
func (o *serveOptions) restConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	config.UserAgent = "phoneproof/" + version.Version() + " serve"
	// The API server protects itself by priority and fairness; client-go's own limit of 5 calls a second would be
	// the slowest part of the service.
	config.QPS = -1
	return config, nil
}

func (s *server) newCluster(config *rest.Config) (*cluster, error) {
	namespace, name, _ := strings.Cut(s.options.project, "/")
	key := types.NamespacedName{Namespace: namespace, Name: name}
	source, err := settings.NewObject(config, key, s.options.secretsDir, clock.RealClock{}, s.log.WithName("settings"))
	if err != nil {
		return nil, err
	}
	s.project, s.current = verification.NewProject(s.options.project), source.Current
	store, err := kubernetes.New(kubernetes.Options{Config: config, Project: s.options.project, ProjectUID: source.UID})
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := verifyv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("know our own kinds: %w", err)
	}
	direct, err := client.New(config, client.Options{Scheme: scheme, Mapper: verifyv1.Mapper()})
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return &cluster{server: s, source: source, store: store, client: direct}, nil
}

// campaign returns the candidacy for the project's lease, whose holder runs the loops.
func (c *cluster) campaign(ctx context.Context, clients clientset.Interface) (*lease.Campaign, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("read the host's name: %w", err)
	}
	namespace, name, _ := strings.Cut(c.project.Name(), "/")
	var campaign *lease.Campaign
	loop, err := c.requestLoop(ctx, c.store, func() bool { return campaign.Firm() && c.source.UID() != "" }, c.receiverHealth())
	if err != nil {
		return nil, err
	}
	campaign, err = lease.New(lease.Options{
		Client: clients, Namespace: namespace, Name: leaseName(name), Identity: host + "_" + uuid.NewString(),
		Times: c.options.lease, Log: c.log.WithName("lease"),
		Term: func(ctx context.Context) error { return c.term(ctx, loop.Options) },
	})
	return campaign, err
}

// term is what the holder of the lease does, afresh each time.
func (c *cluster) term(ctx context.Context, o request.Options) error {
	if err := c.source.Wait(ctx); err != nil {
		return nil //nolint:nilerr // the term ended before there was anything to do
	}
	o.DeletesPerSecond = deletesPerSecond
	return controllers.Run(ctx, controllers.Term(controllers.TermOptions{
		Objects: c.store, Settings: c.source.Subscribe,
		Request: o,
		Draft: draft.Options{
			Store: c.store, Project: c.project, Settings: c.current, Log: c.log.WithName("drafts"),
			Invite: func(s *settings.Settings, m verification.Method, code verification.Code) (link, text string) {
				invitation := invite(s, m, code)
				return invitation.Link, invitation.ExpectedText
			},
		},
		Redelivery: redelivery.Options{
			Projects: c.source, Store: c.store, Observed: c.observeRedelivery, Tell: c.tellRedelivery,
			Log: c.log.WithName("redelivery"),
		},
	}))
}

// receiverHealth tells the project's events when its receiver starts failing and when it recovers.
func (c *cluster) receiverHealth() func(verification.Attempt) {
	var receiver request.Receiver
	return func(a verification.Attempt) {
		project := c.source.Project()
		if project == nil {
			return
		}
		switch receiver.Note(a) {
		case request.Unchanged:
		case request.StartsFailing:
			c.recorder.Eventf(project, nil, corev1.EventTypeWarning, verifyv1.ReasonReceiverFailing, "Deliver",
				"the webhook's receiver fails (%s); events wait and are sent again", a.Reason)
		case request.Recovers:
			c.recorder.Eventf(project, nil, corev1.EventTypeNormal, verifyv1.ReasonNoFailures, "Deliver",
				"the webhook's receiver takes events again")
		}
	}
}

func (c *cluster) observeRedelivery(ctx context.Context, wish string) error {
	namespace, name, _ := strings.Cut(c.project.Name(), "/")
	applied := verifyv1ac.VerificationProject(name, namespace).
		WithStatus(verifyv1ac.VerificationProjectStatus().WithObservedRedeliver(wish))
	return c.client.Status().Apply(ctx, applied, redeliveryFieldOwner, client.ForceOwnership)
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
