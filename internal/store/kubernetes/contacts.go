package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/phoneproof/phoneproof/internal/verification"
)

const (
	// watchGrace is how long the watch may take to reach the present before objects are read instead. In a busy project the next
	// event shows within that time that it has.
	watchGrace = 50 * time.Millisecond
	// pauseFactor bounds what reads of many objects cost the API server, however many contacts or codes strangers send: after
	// each such read, that many times its duration pass before the next.
	pauseFactor = 4
	// maxPause is the longest of these pauses. After a read that timed out, no caller would wait for longer.
	maxPause = time.Second
)

// readPacer spreads such reads. There is one at a time, and only that one uses it.
type readPacer struct{ notBefore time.Time }

// untilNext returns how long it is until the next read may begin.
func (p *readPacer) untilNext() time.Duration { return time.Until(p.notBefore) }

// recordRead records a read that began at that time and has ended now.
func (p *readPacer) recordRead(begin time.Time) {
	p.notBefore = time.Now().Add(min(pauseFactor*time.Since(begin), maxPause))
}

// contactReads makes the index of bindings current, for all callers of one moment at once. The zero value is ready.
//
// The informer alone cannot: a watch delivers events in order, but bookmarks, which would show that there are none, come
// once a minute. So a round first reads the current revision, which costs as much as a GET. An informer that has passed
// that revision holds every binding acknowledged before the call, and its index answers. One that has not within
// watchGrace may be late, or nothing may have happened in this project (the revision counts the writes of all kinds). Then
// the project's open requests are listed once; the final ones, which never change, come from the informer. All requests
// are listed only for a sender that neither has: they are kept for hours, and to read them may take longer than a
// messenger waits.
//
// The index answers in a busy project, the list in a quiet one, where it is rare. Neither answers from the past or
// depends on how often the server sends bookmarks.
type contactReads struct {
	mu    sync.Mutex
	moved chan struct{}
	views sharedReads[view] // by the phases that are read

	reading sync.Mutex // one read of many objects at a time
	pace    readPacer
}

// view returns the requests that the sender behind binding is bound to, as of a moment after the view was requested.
type view func(binding string) []*entry

// notifyProgress wakes the callers that wait for the watch.
func (f *contactReads) notifyProgress() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.moved != nil {
		close(f.moved)
		f.moved = nil
	}
}

func (f *contactReads) nextProgress() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.moved == nil {
		f.moved = make(chan struct{})
	}
	return f.moved
}

// Awaiting implements verification.Store.
func (s *Store) Awaiting(ctx context.Context, binding string) (verification.Request, error) {
	if len(s.viewOfInformer(binding)) > 0 {
		return s.findAwaiting(ctx, binding)
	}
	return readUnderLimit(ctx, s.unknown, func() (verification.Request, error) { return s.findAwaiting(ctx, binding) })
}

func (s *Store) findAwaiting(ctx context.Context, binding string) (verification.Request, error) {
	for _, phases := range []string{openPhases, allPhases} {
		bound, err := s.currentBindings(ctx, phases)
		if err != nil {
			return verification.Request{}, fmt.Errorf("read current bindings: %w", err)
		}
		if latest := findLatest(bound, binding); latest != nil {
			return latest.toRequest()
		}
	}
	return verification.Request{}, verification.ErrNotFound
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

// bindingsSince returns a view with every binding to an open request from before a revision, such as that of a write of ours.
// The watch brings that write itself, so it is rarely necessary to read.
func (s *Store) bindingsSince(ctx context.Context, revision string) (view, error) {
	if s.waitForRevision(ctx, revision, watchGrace) {
		return s.viewOfInformer, nil
	}
	return s.currentBindings(ctx, openPhases)
}

// The phases of the requests that are read: those that may still be verified, or all.
const (
	openPhases = ",status.phase!=Verified,status.phase!=Expired"
	allPhases  = ""
)

// currentBindings returns a view with every binding from before the call to a request in one of these phases. One to another request
// may be missing, if the informer does not know it yet.
func (s *Store) currentBindings(ctx context.Context, phases string) (view, error) {
	bound, err := s.contacts.views.do(ctx, phases, func(ctx context.Context) (view, error) { return s.readBindings(ctx, phases) })
	return bound, preferContextError(ctx, err)
}

// readBindings returns the informer's view if it is current, and else one of the requests in these phases as they are, with the final ones
// that the informer knows.
func (s *Store) readBindings(ctx context.Context, phases string) (view, error) {
	_, revision, err := s.api.readSnapshot(ctx, selectNothing)
	if err != nil {
		return nil, fmt.Errorf("read current revision: %w", err)
	}
	if s.waitForRevision(ctx, revision, watchGrace) {
		return s.viewOfInformer, nil
	}
	s.contacts.reading.Lock()
	defer s.contacts.reading.Unlock()
	if s.waitForRevision(ctx, revision, s.contacts.pace.untilNext()) {
		return s.viewOfInformer, nil
	}
	defer s.contacts.pace.recordRead(time.Now())
	found, _, err := s.api.readSnapshot(ctx, selection{fields: s.api.fieldSelector() + phases, since: revision})
	if err != nil {
		return nil, fmt.Errorf("read requests: %w", err)
	}
	read := viewOfEntries(found)
	return func(binding string) []*entry {
		bound := slices.Clone(read(binding))
		for _, e := range s.viewOfInformer(binding) {
			if e.isFinal() {
				bound = append(bound, e)
			}
		}
		return bound
	}, nil
}

// waitForRevision reports whether the informer reaches that revision within patience.
func (s *Store) waitForRevision(ctx context.Context, revision string, patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		moved := s.contacts.nextProgress() // before the look, so that nothing between the two is missed
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

// viewOfInformer is the view of an informer that is current.
func (s *Store) viewOfInformer(binding string) []*entry {
	items, err := s.informer.GetIndexer().ByIndex(byBinding, binding)
	if err != nil {
		return nil // not reached: newInformer makes the index
	}
	var found []*entry
	for _, item := range items {
		if e := entryOf(item); e != nil && e.kind == KindRequest {
			found = append(found, e)
		}
	}
	return found
}

// viewOfEntries returns the view of objects at one moment.
func viewOfEntries(all []*entry) view {
	byBinding := make(map[string][]*entry)
	for _, e := range all {
		if e.kind != KindRequest {
			continue
		}
		for _, binding := range e.request.SharingBindings() {
			byBinding[binding] = append(byBinding[binding], e)
		}
	}
	return func(binding string) []*entry { return byBinding[binding] }
}
