package postgres

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// pollInterval is the interval at which a replica looks for changes by others; its own changes notify subscribers at once. One
// query serves all subscribers. LISTEN would be faster, but would serialize all commits of the database.
const pollInterval = 300 * time.Millisecond

// watch notifies subscribers of changes.
type watch struct {
	verification.Notifier

	mu      sync.Mutex
	watched map[string]*watched
}

// watched is a request with subscribers.
type watched struct {
	subscribers int
	// version is the version of the last state seen; -1 before the first look, 0 if the request does not exist.
	version int64
}

// versioned is an id with the version of its state.
type versioned struct {
	id      string
	version int64
}

func scanVersion(row pgx.CollectableRow) (v versioned, err error) {
	if err = row.Scan(&v.id, &v.version); err != nil {
		return v, fmt.Errorf("scan version: %w", err)
	}
	return v, nil
}

func (w *watch) subscribe(id string) (<-chan struct{}, func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watched == nil {
		w.watched = make(map[string]*watched)
	}
	entry := w.watched[id]
	if entry == nil {
		entry = &watched{version: -1}
		w.watched[id] = entry
	}
	entry.subscribers++
	changes, cancel := w.Subscribe(id)
	cancelled := false
	return changes, func() { // smaller than a sync.OnceFunc: there is one for each open page
		w.mu.Lock()
		defer w.mu.Unlock()
		if cancelled {
			return
		}
		cancelled = true
		cancel()
		if entry.subscribers--; entry.subscribers == 0 {
			delete(w.watched, id)
		}
	}
}

// watchedIDs returns the ids of requests with subscribers.
func (w *watch) watchedIDs() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := make([]string, 0, len(w.watched))
	for id := range w.watched {
		list = append(list, id)
	}
	slices.Sort(list)
	return list
}

// recordVersions records the current versions of the ids that were queried, which are sorted, and notifies the subscribers of
// changed ones. The first version notifies too: the request may have changed since the subscriber read it.
func (w *watch) recordVersions(asked []string, current []versioned) {
	versions := make([]int64, len(asked)) // 0 for a request that does not exist
	for _, v := range current {
		if i, found := slices.BinarySearch(asked, v.id); found {
			versions[i] = v.version
		}
	}
	var changed []string
	w.mu.Lock()
	for i, id := range asked {
		if entry := w.watched[id]; entry != nil && entry.version != versions[i] {
			entry.version = versions[i]
			changed = append(changed, id)
		}
	}
	w.mu.Unlock()
	for _, id := range changed {
		w.Notify(id)
	}
}

// pollUntilDone polls for changes by other replicas while there are subscribers, until ctx ends.
func (s *Store) pollUntilDone(ctx context.Context) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		asked := s.watch.watchedIDs()
		if len(asked) == 0 {
			continue
		}
		err := s.inTransaction(ctx, func(c *pgx.Conn) error {
			rows, _ := c.Query(ctx, sqlVersions, s.options.Project, asked) // rows holds the error, too
			current, v := make([]versioned, 0, len(asked)), &versioned{}
			_, err := pgx.ForEachRow(rows, []any{&v.id, &v.version}, func() error {
				current = append(current, *v)
				return nil
			})
			if err == nil {
				s.watch.recordVersions(asked, current)
			}
			return wrapStep("read versions", err)
		})
		if err != nil && ctx.Err() == nil {
			s.options.Log.V(1).Info("poll for changes failed, will retry", "reason", err.Error())
		}
	}
}
