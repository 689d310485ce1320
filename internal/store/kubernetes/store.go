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

// Options say what New needs.
type Options struct {
	// Config is how to reach the API server, as a user with the rights of phoneproof-server-kubernetes.
	Config *rest.Config
	// Project is the "namespace/name" whose requests are kept.
	Project string
	// ProjectUID returns the UID of the VerificationProject as it is now: new requests are owned by it, so that they
	// go when it goes. Empty while it is not known; new requests are then refused as Unavailable.
	ProjectUID func() types.UID
	// Clock decides for this store. The real one where nil.
	Clock clock.PassiveClock
	// Registerer gets the metrics; nil for none.
	Registerer prometheus.Registerer
}

// Store keeps the requests of one project. It must be started; until it has synced, what needs the informer is
// Unavailable.
type Store struct {
	api      *api
	owner    func() types.UID
	clock    clock.PassiveClock
	informer cache.SharedIndexInformer
	handler  cache.ResourceEventHandlerRegistration

	ledger   *ledger
	notifier verification.Notifier
	feed     feed
	recent   recent
	fresh    freshness
	codes    codes
	unknown  *unknownReads

	reads flights[*entry]
	turns locks
}

var (
	_ verification.Store   = (*Store)(nil)
	_ verification.Counter = (*Store)(nil)
)

// New returns the store of a project. Nothing is asked before Start.
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
	limits := defaultLimits()
	s := &Store{
		api: api, owner: o.ProjectUID, clock: o.Clock,
		informer: informer, ledger: newLedger(), codes: codes{allowed: limits.codes}, unknown: newUnknownReads(o.Clock, limits),
	}
	if err := s.unknown.register(o.Registerer); err != nil {
		return nil, err
	}
	// The handler is synced after the informer is: only then do the limits count what is stored.
	if s.handler, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    s.observed,
		UpdateFunc: func(_, item any) { s.observed(item) },
		DeleteFunc: s.disappeared,
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

// HasSynced tells whether the informer knows of the objects that there were when it started.
func (s *Store) HasSynced() bool { return s.handler.HasSynced() }

// observed takes a new state from the watch. It runs in the informer: it is cheap and whatever goes wrong in it stays
// in it.
func (s *Store) observed(item any) {
	defer survive()
	e := entryOf(item)
	if e == nil {
		return
	}
	s.recent.passed(e)
	s.ledger.observe(e, s.now())
	s.changed(e)
}

// disappeared takes a deletion from the watch.
func (s *Store) disappeared(item any) {
	defer survive()
	e := entryOf(item)
	if e == nil {
		return
	}
	gone := *e
	gone.kind = KindGone
	s.recent.deleted(&gone)
	s.ledger.forget(gone.Name)
	s.changed(&gone)
}

// survive ends a panic in the informer's handler, which would end the process. Objects are content that people write:
// none of them may do that. What panicked is not logged, it may hold a number.
func survive() {
	if failure := recover(); failure != nil {
		slog.Error("a change of an object could not be taken in", "stack", string(debug.Stack()))
	}
}

// changed tells everybody who waits for news of the request.
func (s *Store) changed(e *entry) {
	s.fresh.pulse()
	s.notifier.Notify(e.Name)
	if code := codeOf(e); code != "" {
		s.notifier.Notify(code)
	}
	s.feed.tell(e.change())
}

// now is the store's time, as objects keep it.
func (s *Store) now() time.Time { return verification.TruncateTime(s.clock.Now()) }

// key is what the informer keys an object by.
func (s *Store) key(name string) string { return s.api.namespace + "/" + name }

// cached returns what this replica knows of the object with that name: the informer's state, or a later one that this
// replica wrote itself. Nil if it knows nothing.
func (s *Store) cached(name string) *entry {
	return s.recent.latest(name, func() *entry {
		item, _, err := s.informer.GetIndexer().GetByKey(s.key(name))
		if err != nil {
			return nil
		}
		return entryOf(item)
	})
}

// lookup is cached for an id that may also be the one that a code leads to.
func (s *Store) lookup(id string) *entry {
	if e := s.cached(id); e != nil {
		return e
	}
	items, err := s.informer.GetIndexer().ByIndex(byCode, id)
	if err != nil {
		return nil
	}
	for _, item := range items {
		if e := entryOf(item); e != nil && e.kind == KindRequest {
			return s.cached(e.Name)
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
	// "Not found" is an answer, too: it is the usual one, for an object that nobody makes.
	_, err := s.reads.do(ctx, "phoneproof-ready", s.readForAll("phoneproof-ready"))
	if errors.Is(err, verification.ErrNotFound) {
		return nil
	}
	return outcome(ctx, err)
}

func errNotSynced() error {
	return verification.Unavailable(errors.New("the informer has not synced yet"))
}
