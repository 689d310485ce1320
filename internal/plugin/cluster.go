package plugin

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// Cluster is the API server that the kubeconfig names.
type Cluster struct {
	client.WithWatch

	Config *rest.Config
	// Namespace is that of the flags or the context.
	Namespace string
}

// kinds are the kinds that commands read or write. With them known, no command has to ask which kinds the server has.
var kinds = map[schema.GroupVersion][]runtime.Object{
	corev1.SchemeGroupVersion:         {&corev1.Pod{}, &corev1.Secret{}, &corev1.Service{}},
	appsv1.SchemeGroupVersion:         {&appsv1.Deployment{}},
	coordinationv1.SchemeGroupVersion: {&coordinationv1.Lease{}},
	eventsv1.SchemeGroupVersion:       {&eventsv1.Event{}},
	networkingv1.SchemeGroupVersion:   {&networkingv1.Ingress{}},
	verifyv1.GroupVersion:             {&verifyv1.VerificationProject{}, &verifyv1.VerificationRequest{}},
}

// Connect returns the cluster of the flags. It asks the cluster nothing yet.
func Connect(flags *genericclioptions.ConfigFlags) (*Cluster, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	namespace, _, err := flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	scheme, mapper, err := registerKinds()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS = -1 // a command makes few calls, and the server has limits of its own
	reader, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	return &Cluster{WithWatch: reader, Config: config, Namespace: namespace}, nil
}

func registerKinds() (*runtime.Scheme, meta.RESTMapper, error) {
	scheme := runtime.NewScheme()
	for _, register := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, coordinationv1.AddToScheme, eventsv1.AddToScheme, networkingv1.AddToScheme, verifyv1.AddToScheme,
	} {
		if err := register(scheme); err != nil {
			return nil, nil, fmt.Errorf("register kinds: %w", err)
		}
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for version, objects := range kinds {
		for _, object := range objects {
			known, _, err := scheme.ObjectKinds(object)
			if err != nil {
				return nil, nil, fmt.Errorf("register kinds: %w", err)
			}
			mapper.Add(version.WithKind(known[0].Kind), meta.RESTScopeNamespace)
		}
	}
	return scheme, mapper, nil
}

// Client is a project and its cluster.
type Client struct {
	*Cluster

	Project *verifyv1.VerificationProject
}

// Open returns the project of that name in the namespace of the flags.
func Open(ctx context.Context, flags *genericclioptions.ConfigFlags, name string) (*Client, error) {
	cluster, err := Connect(flags)
	if err != nil {
		return nil, err
	}
	project := &verifyv1.VerificationProject{}
	if err := cluster.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: name}, project); err != nil {
		return nil, fmt.Errorf("read %s/%s: %w", cluster.Namespace, name, err)
	}
	return &Client{Cluster: cluster, Project: project}, nil
}

// Reload reads the project again.
func (c *Client) Reload(ctx context.Context) error {
	if err := c.Get(ctx, client.ObjectKeyFromObject(c.Project), c.Project); err != nil {
		return fmt.Errorf("read project: %w", err)
	}
	return nil
}

// UsesObjects reports whether the project keeps its requests as objects.
func (c *Client) UsesObjects() bool { return c.Project.Spec.Storage.Type != verifyv1.StoragePostgreSQL }
