package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// Options configure a Store.
type Options struct {
	// Config reaches the API server with the rights of phoneproof-server-kubernetes.
	Config *rest.Config
	// Project is "namespace/name".
	Project string
	// ProjectUID returns the current UID of the VerificationProject, which owns new requests. While it is empty, because it is
	// not known, new requests are refused as Unavailable.
	ProjectUID func() types.UID
	// Clock is the store clock; the real one if nil.
	Clock clock.PassiveClock
	// Registerer registers the metrics; may be nil.
	Registerer prometheus.Registerer
}

// Store keeps the requests of one project. Until it is started and has synced, methods that need the informer return Unavailable.
type Store struct {
	api      *api
	owner    func() types.UID
	clock    clock.PassiveClock
	informer cache.SharedIndexInformer
	handler  cache.ResourceEventHandlerRegistration

	limits    *creationLimits
	notifier  verification.Notifier
	changes   changeFeed
	ownWrites ownWrites
	contacts  contactReads
	codes     codeReads
	unknown   *unknownReads

	reads sharedReads[*entry]
	locks keyedLocks
}

var (
	_ verification.Store   = (*Store)(nil)
	_ verification.Counter = (*Store)(nil)
)

// New returns the store of a project. It calls the API server only after Start.
func New(o Options) (*Store, error) {
	namespace, name, ok := strings.Cut(o.Project, "/")
	if !ok || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return nil, fmt.Errorf("project %q is not namespace/name", o.Project)
	}
	api, err := newAPI(o.Config, namespace, name)
	if err != nil {
		return nil, err
	}
	informer, err := newInformer(api)
	if err != nil {
		return nil, err
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	limits := defaultReadLimits()
	s := &Store{
		api: api, owner: o.ProjectUID, clock: o.Clock,
		informer: informer, limits: newCreationLimits(), codes: codeReads{allowed: limits.codes}, unknown: newUnknownReads(o.Clock, limits),
	}
	if err := s.unknown.registerMetrics(o.Registerer); err != nil {
		return nil, err
	}
	// The handler syncs after the informer, and only then do the limits count the stored objects.
	if s.handler, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    s.handleObserved,
		UpdateFunc: func(_, item any) { s.handleObserved(item) },
		DeleteFunc: s.handleDeleted,
	}); err != nil {
		return nil, fmt.Errorf("make informer: %w", err)
	}
	return s, nil
}

// Start runs the informer until ctx ends. It is a manager.Runnable of every replica.
func (s *Store) Start(ctx context.Context) error {
	s.informer.RunWithContext(ctx)
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (s *Store) NeedLeaderElection() bool { return false }

// HasSynced reports whether the informer knows the objects that existed when it started.
func (s *Store) HasSynced() bool { return s.handler.HasSynced() }

// handleObserved takes a new state from the watch. It runs in the informer, so it is cheap and does not panic.
func (s *Store) handleObserved(item any) {
	defer recoverHandler()
	e := entryOf(item)
	if e == nil {
		return
	}
	s.ownWrites.forgetObserved(e)
	s.limits.addObserved(e, s.now())
	s.notifyChange(e)
}

// handleDeleted takes a deletion from the watch.
func (s *Store) handleDeleted(item any) {
	defer recoverHandler()
	e := entryOf(item)
	if e == nil {
		return
	}
	gone := *e
	gone.kind = KindGone
	s.ownWrites.forgetDeleted(&gone)
	s.limits.removeStored(gone.Name)
	s.notifyChange(&gone)
}

// recoverHandler ends a panic in the informer's handler, which would end the process: people write these objects, and none of them
// may do that. The value of the panic is not logged, because it may hold a number.
func recoverHandler() {
	if failure := recover(); failure != nil {
		slog.Error("watch event could not be handled", "stack", string(debug.Stack()))
	}
}

// notifyChange notifies all that wait for changes of the request.
func (s *Store) notifyChange(e *entry) {
	s.contacts.notifyProgress()
	s.notifier.Notify(e.Name)
	if code := codeOf(e); code != "" {
		s.notifier.Notify(code)
	}
	s.changes.notifyListeners(e.toChange())
}

// now is the store's time, as objects keep it.
func (s *Store) now() time.Time { return verification.TruncateTime(s.clock.Now()) }

// informerKey returns the key of an object in the informer.
func (s *Store) informerKey(name string) string { return s.api.namespace + "/" + name }

// cachedEntry returns the object with that name as this replica knows it: the informer's state, or a later one that this
// replica wrote itself; nil if it knows none.
func (s *Store) cachedEntry(name string) *entry {
	return s.ownWrites.latestState(name, func() *entry {
		item, _, err := s.informer.GetIndexer().GetByKey(s.informerKey(name))
		if err != nil {
			return nil
		}
		return entryOf(item)
	})
}

// cachedEntryOrCode is cachedEntry for an id that may also be the one that a code leads to.
func (s *Store) cachedEntryOrCode(id string) *entry {
	if e := s.cachedEntry(id); e != nil {
		return e
	}
	items, err := s.informer.GetIndexer().ByIndex(byCode, id)
	if err != nil {
		return nil
	}
	for _, item := range items {
		if e := entryOf(item); e != nil && e.kind == KindRequest {
			return s.cachedEntry(e.Name)
		}
	}
	return nil
}

// Subscribe implements verification.Store.
func (s *Store) Subscribe(id string) (<-chan struct{}, func()) { return s.notifier.Subscribe(id) }

// Ready implements verification.Store: the informer knows the objects, and the API server answers now.
func (s *Store) Ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !s.HasSynced() {
		return errNotSynced()
	}
	// The usual answer is "not found", because no such object is ever created.
	_, err := s.reads.do(ctx, "phoneproof-ready", s.getForAll("phoneproof-ready"))
	if errors.Is(err, verification.ErrNotFound) {
		return nil
	}
	return preferContextError(ctx, err)
}

func errNotSynced() error {
	return verification.Unavailable(errors.New("the informer has not synced yet"))
}
