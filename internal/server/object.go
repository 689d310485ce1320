package server

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/panics"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// errNoProject is returned if the project's object does not exist or is invalid.
var errNoProject = errors.New("the VerificationProject cannot be served")

// Permissions to watch the project's object.
// +kubebuilder:rbac:groups=phoneproof.dev,resources=verificationprojects,verbs=get;list;watch

// object keeps settings up to date with the project's object in a cluster, through a watch, and with secret files. While the
// API server is unavailable, the last settings stay in use.
type object struct {
	*settings.Live

	key     types.NamespacedName
	cache   cache.Cache
	log     logr.Logger
	adopted types.UID // of the object that Live uses; only the watch accesses it

	mu      sync.Mutex
	project *verifyv1.VerificationProject // the last one from the watch; nil before that and after its deletion
	first   chan struct{}                 // closed when the first settings are available
	seen    verification.Notifier
}

// newObject returns the settings of a project, with the mounted secrets in a folder. It sends no requests before Start.
func newObject(
	config *rest.Config, key types.NamespacedName, secretsDir string, mounted settings.Mounted, clk clock.Clock, log logr.Logger,
) (*object, error) {
	scheme := runtime.NewScheme()
	if err := verifyv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register API types: %w", err)
	}
	// List and watch only the object of this name: the role allows more in its namespace.
	watched, err := cache.New(config, cache.Options{
		Scheme: scheme,
		Mapper: verifyv1.Mapper(),
		ByObject: map[client.Object]cache.ByObject{&verifyv1.VerificationProject{}: {
			Namespaces: map[string]cache.Config{key.Namespace: {}},
			Field:      fields.OneTermEqualSelector("metadata.name", key.Name),
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("watch project %s: %w", key, err)
	}
	live := settings.NewLive(secretsDir, clk, log)
	live.SetMounted(mounted)
	return &object{Live: live, key: key, cache: watched, log: log, first: make(chan struct{})}, nil
}

// Start watches the object and the secret files until ctx ends.
func (o *object) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return panics.ToError(func() error { return o.Live.Start(ctx) }) })
	group.Go(func() error { return panics.ToError(func() error { return o.watchProject(ctx) }) })
	return group.Wait()
}

func (o *object) watchProject(ctx context.Context) error {
	informer, err := o.cache.GetInformer(ctx, &verifyv1.VerificationProject{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch project %s: %w", o.key, err)
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    o.handleUpdate,
		UpdateFunc: func(_, item any) { o.handleUpdate(item) },
		DeleteFunc: func(any) { o.handleDeletion() },
	}); err != nil {
		return fmt.Errorf("watch project %s: %w", o.key, err)
	}
	if err := o.cache.Start(ctx); err != nil {
		return fmt.Errorf("watch project %s: %w", o.key, err)
	}
	return nil
}

// handleUpdate applies the object from a watch event.
func (o *object) handleUpdate(item any) {
	project, ok := item.(*verifyv1.VerificationProject)
	if !ok {
		return
	}
	defer o.seen.Notify("")
	accepted := o.adoptProject(project)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.project = project
	if accepted && !isClosed(o.first) {
		close(o.first)
	}
}

// adoptProject applies the object, and reports whether it was accepted. Immutable fields may differ in an object that was created in
// place of a deleted one.
func (o *object) adoptProject(project *verifyv1.VerificationProject) bool {
	another := o.adopted != project.UID
	if another {
		o.adopted = project.UID
		o.ForgetProject()
	}
	err := o.SetProject(project)
	if another && err != nil { // Live logs rejections only once it has a project
		o.log.Error(err, "project rejected")
	}
	return err == nil
}

// handleDeletion records that the project was deleted. Until its pods are deleted too, they use the last settings but become
// owner of nothing new.
func (o *object) handleDeletion() {
	defer o.seen.Notify("")
	o.mu.Lock()
	defer o.mu.Unlock()
	o.project = nil
	o.log.Info("the project was deleted")
}

// Wait returns when settings are available: Current is not nil afterwards. If ctx ends first, it returns errNoProject.
func (o *object) Wait(ctx context.Context) error {
	select {
	case <-o.first:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("project %s: %w: %w", o.key, errNoProject, ctx.Err())
	}
}

// Observe returns a channel that receives a coalesced value after each change of the object, including its annotations, status
// and deletion, and a function that ends the subscription.
func (o *object) Observe() (changes <-chan struct{}, cancel func()) { return o.seen.Subscribe("") }

// Project returns the last object from the watch; nil before that and after its deletion. It is shared and must not be
// changed.
func (o *object) Project() *verifyv1.VerificationProject {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.project
}

// UID returns the object's UID; empty without an object.
func (o *object) UID() types.UID {
	if project := o.Project(); project != nil {
		return project.UID
	}
	return ""
}

func isClosed(ch chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
