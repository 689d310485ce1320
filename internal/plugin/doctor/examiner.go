package doctor

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"

	"github.com/phoneproof/phoneproof/internal/plugin"
)

// Options are how much is examined.
type Options struct {
	// Probe has this machine connect to spec.baseURL.
	Probe bool
	// AllNamespaces has the projects of all namespaces examined.
	AllNamespaces bool
	// AskPlatforms has the messengers' platforms asked with the credentials in the Secrets.
	AskPlatforms bool
	// Docs is where findings lead.
	Docs plugin.Docs
	// Timeout bounds each of the reads, which run at the same time.
	Timeout time.Duration
	// OperatorNamespace is where the operator is looked for if its Deployment may not be listed in all namespaces.
	OperatorNamespace string
	// GraphURL, BotAPIURL and SimulatorURL are the platforms; the public ones, and no simulator, if empty.
	GraphURL, BotAPIURL, SimulatorURL string

	// Settle is how long the operator and the pods may take to act on a change; 2 minutes if zero.
	Settle time.Duration
	// Roots are trusted for spec.baseURL; nil for those of the system. Resolver is nil for the system's, and Now for the machine's
	// clock. They are for tests.
	Roots    *x509.CertPool
	Resolver *net.Resolver
	Now      func() time.Time
}

// Examiner reads facts by the rights of its user.
type Examiner struct {
	options Options
	config  *rest.Config
	client  client.Client
	core    rest.Interface
}

// NewExaminer returns an examiner of the cluster that a configuration leads to.
func NewExaminer(config *rest.Config, o Options) (*Examiner, error) {
	if o.Settle == 0 {
		o.Settle = 2 * time.Minute
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, verifyv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register API types: %w", err)
		}
	}
	all, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	plain := rest.CopyConfig(config)
	plain.APIPath, plain.GroupVersion = "/api", &corev1.SchemeGroupVersion
	plain.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	core, err := rest.RESTClientFor(plain)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	return &Examiner{options: o, config: config, client: all, core: core}, nil
}

// errNoKind is the error of a cluster without the CRDs.
var errNoKind = errors.New("the cluster has no VerificationProjects: install the CRDs with the chart, or with `kubectl apply --server-side -k config/crd`")

// unlistedError is why projects may not be listed.
type unlistedError string

// Error returns it.
func (e unlistedError) Error() string { return string(e) }

// Projects returns the project of that name, or all of the namespace if it is empty. Its errors name what to do.
func (e *Examiner) Projects(ctx context.Context, namespace, name string) ([]verifyv1.VerificationProject, error) {
	ctx, cancel := context.WithTimeout(ctx, e.options.Timeout)
	defer cancel()
	var list verifyv1.VerificationProjectList
	var err error
	if name == "" {
		err = e.client.List(ctx, &list, client.InNamespace(namespace))
	} else {
		list.Items = make([]verifyv1.VerificationProject, 1)
		err = e.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &list.Items[0])
	}
	switch {
	case isKindMissing(err):
		return nil, errNoKind
	case apierrors.IsForbidden(err) && name == "":
		return nil, unlistedError(explainUnread(err, "list verificationprojects", namespace))
	case err != nil && name == "":
		return nil, errors.New(explainUnread(err, "list verificationprojects", namespace))
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no VerificationProject %s in namespace %s", name, namespace)
	case err != nil:
		return nil, errors.New(explainUnread(err, "get verificationprojects", namespace))
	}
	return list.Items, nil
}

// isKindMissing reports whether the API server does not have the kind.
func isKindMissing(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return runtime.IsNotRegisteredError(err) || isNoMatch(err) ||
		ok && apierrors.IsNotFound(err) && (status.ErrStatus.Details == nil || status.ErrStatus.Details.Name == "")
}

// Gather reads the facts of a project. Each gatherer writes fields of its own.
func (e *Examiner) Gather(ctx context.Context, project *verifyv1.VerificationProject) *Facts {
	return e.gather(ctx, project, e.readServerClock, e.readPodClock, e.readDeployment, e.readPods, e.readQuotas, e.readRanges, e.readPolicies,
		e.readOperators, e.readCRDs, e.readSecrets, e.countCallbacks, e.probeAddress)
}

// GatherInstallation reads the facts of the installation, which has a project without a name for its checks.
func (e *Examiner) GatherInstallation(ctx context.Context, namespace string) *Facts {
	none := &verifyv1.VerificationProject{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}
	return e.gather(ctx, none, e.readServerClock, e.readOperators, e.readCRDs)
}

func (e *Examiner) gather(ctx context.Context, project *verifyv1.VerificationProject, gatherers ...func(context.Context, *Facts)) *Facts {
	f := &Facts{Project: project, Now: e.options.Now(), Settle: e.options.Settle, Docs: e.options.Docs}
	var group sync.WaitGroup
	for _, gather := range gatherers {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, e.options.Timeout)
			defer cancel()
			gather(ctx, f)
		})
	}
	group.Wait()
	dropForeignVersion(f)
	return f
}

// explainUnread returns why something could not be read. It repeats nothing of what a server wrote.
func explainUnread(err error, right, namespace string) string {
	where := " in " + namespace
	if namespace == "" {
		where = " in all namespaces"
	}
	reason := apierrors.ReasonForError(err)
	switch {
	case apierrors.IsForbidden(err):
		return "needs " + right + where
	case apierrors.IsUnauthorized(err):
		return "the API server does not know the user: log in again"
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case reason != metav1.StatusReasonUnknown:
		return right + where + " failed: " + string(reason)
	default:
		return right + where + " failed: the API server could not be reached"
	}
}
