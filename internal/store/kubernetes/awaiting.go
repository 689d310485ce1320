package kubernetes

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/phoneproof/phoneproof/internal/verification"
)

const (
	// grace is how long the watch may take to reach the present before all objects are read instead. On a busy project
	// the next event proves it within that time.
	grace = 50 * time.Millisecond
	// pacing bounds what reading many objects costs the API server: after each such read, that many times its duration
	// pass before the next, however many contacts or codes strangers send to the bot.
	pacing = 4
	// maxPause is the longest of these pauses. After a read that ran into its timeout nobody would wait for more.
	maxPause = time.Second
)

// pace spreads such reads. There is one at a time, and only that one touches this.
type pace struct{ notBefore time.Time }

// left returns how long it is until the next read may begin.
func (p *pace) left() time.Duration { return time.Until(p.notBefore) }

// spent notes a read that began then and has ended now.
func (p *pace) spent(begin time.Time) {
	p.notBefore = time.Now().Add(min(pacing*time.Since(begin), maxPause))
}

// freshness makes the index of bindings current, for all callers of one moment at once. The zero value is ready.
//
// The informer alone cannot do it: a watch delivers events in order but never says that there is none, and the
// bookmarks that would say so come once a minute. So a round first learns the current revision, with a read that costs
// as much as a GET. An informer that has passed that revision holds every binding acknowledged before the call, and
// its index answers. One that has not within grace may be late, or merely nothing may have happened in this project
// (the revision counts the writes of all kinds); then the project's open requests are streamed once and answer themselves,
// with the final ones that the informer knows, which stay as they are. All requests are streamed only for a sender whom
// neither has: they are kept for hours, and as many as that may take longer to read than a messenger waits.
// The first is the way of a busy project, the second of a quiet one, where it is rare; either way no verb is LIST, no
// caller is answered from the past, and neither depends on how often the server sends bookmarks.
type freshness struct {
	mu          sync.Mutex
	moved       chan struct{}
	open, whole flights[view]

	reading sync.Mutex // one read of many objects at a time
	pace    pace
}

// view returns the requests that the sender behind binding is bound to, as of some moment after it was asked for.
type view func(binding string) []*entry

// pulse wakes who waits for the watch to get somewhere.
func (f *freshness) pulse() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.moved != nil {
		close(f.moved)
		f.moved = nil
	}
}

func (f *freshness) next() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.moved == nil {
		f.moved = make(chan struct{})
	}
	return f.moved
}

// Awaiting implements verification.Store.
func (s *Store) Awaiting(ctx context.Context, binding string) (r verification.Request, err error) {
	if len(s.indexed(binding)) > 0 {
		return s.findAwaiting(ctx, binding)
	}
	err = s.unknown.read(ctx, func() error {
		r, err = s.findAwaiting(ctx, binding)
		return err
	})
	return r, err
}

func (s *Store) findAwaiting(ctx context.Context, binding string) (verification.Request, error) {
	bound, err := s.bindings(ctx)
	if err != nil {
		return verification.Request{}, err
	}
	latest := findLatest(bound, binding)
	if latest == nil {
		bound, err = s.fresh.whole.do(ctx, "", func(ctx context.Context) (view, error) { return s.catchUp(ctx, s.readAll) })
		if err != nil {
			return verification.Request{}, outcome(ctx, err)
		}
		latest = findLatest(bound, binding)
	}
	if latest == nil {
		return verification.Request{}, verification.ErrNotFound
	}
	return latest.answer()
}

// findLatest returns the request that the sender was bound to last; nil if there is none in the view.
func findLatest(bound view, binding string) *entry {
	var latest *entry
	for _, e := range bound(binding) {
		if latest == nil || e.request.BoundAt(binding).After(latest.request.BoundAt(binding)) {
			latest = e
		}
	}
	return latest
}

// bindingsSince returns a view that holds every binding of before a revision, such as that of a write of ours, to requests
// that are open: the watch brings that write itself, so there is hardly ever anything to be read.
func (s *Store) bindingsSince(ctx context.Context, revision string) (view, error) {
	if s.reaches(ctx, revision, grace) {
		return s.indexed, nil
	}
	return s.bindings(ctx)
}

// bindings returns a view that holds every binding of before the call to requests that are open. One of a final request may
// be missing if the informer has not heard of that.
func (s *Store) bindings(ctx context.Context) (view, error) {
	bound, err := s.fresh.open.do(ctx, "", func(ctx context.Context) (view, error) { return s.catchUp(ctx, s.readOpen) })
	return bound, outcome(ctx, err)
}

// catchUp returns the informer's view if it is current, and what read returns if it is not.
func (s *Store) catchUp(ctx context.Context, read func(ctx context.Context, revision string) (view, error)) (view, error) {
	revision, err := s.api.revision(ctx)
	if err != nil {
		return nil, err
	}
	if s.reaches(ctx, revision, grace) {
		return s.indexed, nil
	}
	s.fresh.reading.Lock()
	defer s.fresh.reading.Unlock()
	if s.reaches(ctx, revision, s.fresh.pace.left()) {
		return s.indexed, nil
	}
	defer s.fresh.pace.spent(time.Now())
	return read(ctx, revision)
}

// readOpen returns a view of the open requests as they are, and of the final ones that the informer knows.
func (s *Store) readOpen(ctx context.Context, revision string) (view, error) {
	found, err := s.api.snapshot(ctx, snapshotOf{fields: s.api.selection() + openPhases, since: revision})
	if err != nil {
		return nil, err
	}
	open := listed(found)
	return func(binding string) []*entry {
		bound := slices.Clone(open(binding))
		for _, e := range s.indexed(binding) {
			if e.final() {
				bound = append(bound, e)
			}
		}
		return bound
	}, nil
}

// openPhases selects requests that may still be verified.
const openPhases = ",status.phase!=Verified,status.phase!=Expired"

// readAll returns a view of all requests as they are.
func (s *Store) readAll(ctx context.Context, revision string) (view, error) {
	found, err := s.api.snapshot(ctx, snapshotOf{fields: s.api.selection(), since: revision})
	if err != nil {
		return nil, err
	}
	return listed(found), nil
}

// reaches tells whether the informer gets to that revision within patience.
func (s *Store) reaches(ctx context.Context, revision string, patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		moved := s.fresh.next() // before the look, so that nothing between the two is missed
		order, err := resourceversion.CompareResourceVersion(s.informer.GetStore().LastStoreSyncResourceVersion(), revision)
		if err == nil && order >= 0 {
			return true
		}
		select {
		case <-moved:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// indexed is the view of an informer that is current.
func (s *Store) indexed(binding string) []*entry {
	items, err := s.informer.GetIndexer().ByIndex(byBinding, binding)
	if err != nil {
		return nil // there is no such index: newInformer makes it
	}
	var found []*entry
	for _, item := range items {
		if e := entryOf(item); e != nil && e.kind == KindRequest {
			found = append(found, e)
		}
	}
	return found
}

// listed is the view of all objects at one moment.
func listed(all []*entry) view {
	byBinding := make(map[string][]*entry)
	for _, e := range all {
		if e.kind != KindRequest {
			continue
		}
		for _, c := range e.request.Contacts {
			byBinding[c.Binding] = append(byBinding[c.Binding], e)
		}
	}
	return func(binding string) []*entry { return byBinding[binding] }
}
