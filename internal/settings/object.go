package settings

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
	"github.com/phoneproof/phoneproof/internal/verification"
)

// ErrNoProject says that the project's object is not there, or not valid.
var ErrNoProject = errors.New("the VerificationProject cannot be served")

// Object keeps settings current that come from the project's own object in a cluster, by a watch, and secret files. While
// the API server is away the last settings stay.
type Object struct {
	*Live

	key   types.NamespacedName
	cache cache.Cache
	log   logr.Logger
	taken types.UID // of the object that Live goes by; the watch's own

	mu      sync.Mutex
	project *verifyv1.VerificationProject // as the watch brought it last; nil before, and when it was deleted
	first   chan struct{}                 // closed when there are settings
	seen    verification.Notifier
}

// NewObject returns the settings of a project, with the secrets in a folder of which this pod mounts some. It asks for
// nothing before Start.
func NewObject(
	config *rest.Config, key types.NamespacedName, secretsDir string, mounted Mounted, clk clock.Clock, log logr.Logger,
) (*Object, error) {
	scheme := runtime.NewScheme()
	if err := verifyv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("know VerificationProject: %w", err)
	}
	// Only the object of this name is listed and watched, so the rights on its namespace are used for nothing else.
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
	live := NewLive(secretsDir, clk, log)
	live.files.mounted = mounted
	return &Object{Live: live, key: key, cache: watched, log: log, first: make(chan struct{})}, nil
}

// Start follows the object and the secret files until ctx ends.
func (o *Object) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return o.Live.Start(ctx) })
	group.Go(func() error { return o.follow(ctx) })
	return group.Wait()
}

func (o *Object) follow(ctx context.Context) error {
	informer, err := o.cache.GetInformer(ctx, &verifyv1.VerificationProject{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch project %s: %w", o.key, err)
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    o.observe,
		UpdateFunc: func(_, item any) { o.observe(item) },
		DeleteFunc: func(any) { o.deleted() },
	}); err != nil {
		return fmt.Errorf("watch project %s: %w", o.key, err)
	}
	if err := o.cache.Start(ctx); err != nil {
		return fmt.Errorf("watch project %s: %w", o.key, err)
	}
	return nil
}

// observe takes the object as it is now.
func (o *Object) observe(item any) {
	project, ok := item.(*verifyv1.VerificationProject)
	if !ok {
		return
	}
	defer o.seen.Notify("")
	err := o.take(project)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.project = project
	if err == nil && !closed(o.first) {
		close(o.first)
	}
}

// take makes the object the one to go by, or says why it is refused. What may not change in one object may differ in
// another that was created in its place.
func (o *Object) take(project *verifyv1.VerificationProject) error {
	another := o.taken != project.UID
	if another {
		o.taken = project.UID
		o.Live.mu.Lock()
		o.Live.project = nil
		o.Live.mu.Unlock()
	}
	err := o.SetProject(project)
	if another && err != nil { // Live tells what it refuses in place of something
		o.log.Error(err, "the project is refused")
	}
	return err
}

// deleted notes that the project is gone. The pods follow soon; until then they answer by the last settings, but own
// nothing new.
func (o *Object) deleted() {
	defer o.seen.Notify("")
	o.mu.Lock()
	defer o.mu.Unlock()
	o.project = nil
	o.log.Info("the project was deleted", "project", o.key.String())
}

// Wait returns when there are settings, so that Current is never nil afterwards.
func (o *Object) Wait(ctx context.Context) error {
	select {
	case <-o.first:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("project %s: %w: %w", o.key, ErrNoProject, ctx.Err())
	}
}

// Observe returns a channel that gets a value, coalesced, after each change of the object, its annotations, its status and
// its deletion included, and a function that ends it.
func (o *Object) Observe() (changes <-chan struct{}, cancel func()) { return o.seen.Subscribe("") }

// Project returns the object as the watch brought it last; nil before, and when it was deleted. It is shared, so it must
// not be changed.
func (o *Object) Project() *verifyv1.VerificationProject {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.project
}

// UID returns the object's UID; empty while there is none.
func (o *Object) UID() types.UID {
	if project := o.Project(); project != nil {
		return project.UID
	}
	return ""
}

func closed(ch chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
